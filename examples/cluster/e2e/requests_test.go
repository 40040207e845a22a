package e2e

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
)

// requests counts what an API server was asked: by "update persistentvolumes/status", and what was refused by
// "conflict …" and "forbidden …".
type requests map[string]int

var (
	counter = regexp.MustCompile(`(?m)^apiserver_request_total\{(.*)\} (\S+)$`)
	label   = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// countRequests counts since the start of the server.
func countRequests(ctx context.Context, client kubernetes.Interface) (requests, error) {
	text, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	counts := requests{}
	for _, line := range counter.FindAllStringSubmatch(string(text), -1) {
		labels := map[string]string{}
		for _, pair := range label.FindAllStringSubmatch(line[1], -1) {
			labels[pair[1]] = pair[2]
		}
		n, err := strconv.ParseFloat(line[2], 64)
		if err != nil {
			return nil, fmt.Errorf("/metrics: %q: %w", line[0], err)
		}
		counts.add(labels, int(n))
	}
	return counts, nil
}

var verbs = map[string]string{"PUT": "update", "POST": "create", "APPLY": "patch"}

func (r requests) add(labels map[string]string, n int) {
	verb, ok := verbs[labels["verb"]]
	if !ok {
		verb = strings.ToLower(labels["verb"])
	}
	of := labels["resource"]
	if sub := labels["subresource"]; sub != "" {
		of += "/" + sub
	}
	r[verb+" "+of] += n
	switch labels["code"] {
	case "409":
		r["conflict "+of] += n
	case "403":
		r["forbidden "+of] += n
	}
}

// since is what was asked after an earlier count, of the kinds that a binder works on.
func (r requests) since(earlier requests) requests {
	more := requests{}
	for name, n := range r {
		if n -= earlier[name]; n != 0 && strings.Contains(name, "persistentvolume") {
			more[name] = n
		}
	}
	return more
}

// starting adds up what begins so.
func (r requests) starting(prefix string) int {
	sum := 0
	for name, n := range r {
		if strings.HasPrefix(name, prefix) {
			sum += n
		}
	}
	return sum
}

func (r requests) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, r[name]))
	}
	return strings.Join(parts, ", ")
}
