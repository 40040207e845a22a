package dump

import (
	"errors"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pvbind/pvbind/binding/obj"
)

// Input is what was read.
type Input struct {
	Entries []Entry
	Notes   []string // what was passed over, one line each
}

// Entry is an object of the input and where it stands there.
type Entry struct {
	Place
	Name   string // as kubectl would name it
	Object obj.Object
}

// Objects are the objects alone.
func (in Input) Objects() []obj.Object {
	objects := make([]obj.Object, len(in.Entries))
	for i, e := range in.Entries {
		objects[i] = e.Object
	}
	return objects
}

// Progress is told now and then how many objects of a file are read. It is called by one goroutine at a time.
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
	scheme   *runtime.Scheme
	seen     map[string]Place // the names and uids so far
	problems []error
	progress Progress
}

// read adds what is in a file. Its pieces are read side by side, and added in their order.
func (r *reader) read(file string, data []byte) {
	pieces := piecesOf(file, data)
	others := map[string]int{}
	for _, results := range inParallel(pieces, r.typedAll, r.progress) {
		for _, result := range results {
			r.add(result, others)
		}
	}
	r.noteOthers(file, others)
}
