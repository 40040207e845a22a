package dump

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"

	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/pvbind/pvbind/binding/obj"
)

// Input is what was read.
type Input struct {
	Entries []Entry
	Notes   []string // what was passed over, one line each
}

// Entry is an object of the input and its place there.
type Entry struct {
	Place
	Name   string // as kubectl would name it
	Object obj.Object
}

// Objects returns the objects alone.
func (in Input) Objects() []obj.Object {
	objects := make([]obj.Object, len(in.Entries))
	for i, e := range in.Entries {
		objects[i] = e.Object
	}
	return objects
}

// Progress reports now and then how many objects of a file are read. It is called by one goroutine at a time.
type Progress func(done, of int)

// Read reads the files, "-" being stdin. Its error joins one error for each thing that is wrong. progress may be nil.
func Read(files []string, stdin io.Reader, progress Progress) (Input, error) {
	r := reader{scheme: newScheme(), seen: map[string]Place{}, progress: progress}
	for _, file := range files {
		data, err := contents(file, stdin)
		if err != nil {
			r.problems = append(r.problems, &UsageError{err})
			continue
		}
		r.read(file, data)
	}
	return r.Input, errors.Join(r.problems...)
}

func contents(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(file)
}

// reader gathers an Input.
type reader struct {
	Input
	scheme   *apiruntime.Scheme
	seen     map[string]Place // the names and uids so far
	problems []error
	progress Progress
}

// read adds what is in a file. Its pieces are read in parallel, and added in their order.
func (r *reader) read(file string, data []byte) {
	others := map[string]int{}
	for _, results := range inParallel(piecesOf(file, data), r.results, r.progress) {
		for _, result := range results {
			r.add(result, others)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		r.Notes = append(r.Notes, OneLine(fmt.Sprintf("%s: passed over %s (%d)", file, name, others[name])))
	}
}

// batch is how many things a worker takes at a time.
const batch = 256

// inParallel calls do with each of many things, on all processors, and returns the outcomes in order.
func inParallel[T, R any](things []T, do func(T) R, progress Progress) []R {
	outcomes := make([]R, len(things))
	var mutex sync.Mutex
	var taken, done int
	take := func(finished int) (from, to int) {
		mutex.Lock()
		defer mutex.Unlock()
		done += finished
		if progress != nil && finished > 0 {
			progress(done, len(things))
		}
		from = taken
		taken = min(taken+batch, len(things))
		return from, taken
	}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for from, to := take(0); from < to; from, to = take(to - from) {
				for i := from; i < to; i++ {
					outcomes[i] = do(things[i])
				}
			}
		})
	}
	workers.Wait()
	return outcomes
}

// result is what came of one document.
type result struct {
	Entry
	other    string   // what it is instead, if its kind is passed over
	notes    []string // what of it was passed over
	problems []error
}

// results reads a piece and makes of each document in it an object of its kind, complete and valid.
func (r *reader) results(p piece) []result {
	if object, known := r.direct(p.item); object != nil {
		return []result{complete(object, p.Place, known)}
	}
	documents, err := p.open()
	var results []result
	if problems := Unjoin(err); len(problems) > 0 {
		results = append(results, result{problems: problems})
	}
	for _, d := range documents {
		if known, ok := kindOf(d.apiVersion, d.kind); ok {
			results = append(results, r.result(d, known))
		} else {
			results = append(results, result{other: d.apiVersion + " " + d.kind})
		}
	}
	return results
}

func (r *reader) result(d document, known kind) result {
	object, notes, problem := typed(r.scheme, d, known)
	if problem != nil {
		return result{notes: notes, problems: []error{problem}}
	}
	found := complete(object, d.Place, known)
	found.notes = notes
	return found
}

// complete gives an object the namespace that it does not name, and shows what the API server would find wrong with it.
func complete(object obj.Object, at Place, known kind) result {
	if known.namespaced && object.GetNamespace() == "" {
		object.SetNamespace(DefaultNamespace)
	}
	name := known.name(object.GetNamespace(), object.GetName())
	if errs := validate(object); len(errs) > 0 {
		return result{problems: []error{invalid(at, name, errs)}}
	}
	return result{Entry: Entry{Place: at, Name: name, Object: object}}
}

// add adds what came of one document, and counts it among the others if its kind is passed over.
func (r *reader) add(found result, others map[string]int) {
	r.Notes = append(r.Notes, found.notes...)
	r.problems = append(r.problems, found.problems...)
	switch {
	case found.other != "":
		others[found.other]++
	case found.Object == nil, !r.unique(found.Entry, "metadata.name", found.Name):
	case found.Object.GetUID() != "" && !r.unique(found.Entry, "metadata.uid", "uid "+string(found.Object.GetUID())):
	default:
		r.Entries = append(r.Entries, found.Entry)
	}
}

// unique reports whether nothing in the input had that name before.
func (r *reader) unique(e Entry, field, name string) bool {
	first, twice := r.seen[name]
	if twice {
		r.problems = append(r.problems, &Problem{Place: e.Place, Object: e.Name, Field: field, Text: "is already in " + first.String()})
	}
	r.seen[name] = e.Place
	return !twice
}
