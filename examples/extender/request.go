package extender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	schedulerv1 "k8s.io/kube-scheduler/extender/v1"
)

// serve answers one kind of request.
func serve[Args, Result any](s *Server, answer func(context.Context, *Args) (Result, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		args := new(Args)
		if err := read(http.MaxBytesReader(w, r.Body, s.maxRequest()), args); err != nil {
			reject(w, err)
			return
		}
		result, err := answer(r.Context(), args)
		if err != nil {
			reject(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(result) // the scheduler may be gone
	}
}

// read reads one JSON value and no more.
func read(body io.Reader, args any) error {
	decoder := json.NewDecoder(body)
	if err := decoder.Decode(args); err != nil {
		return fmt.Errorf("the body is not the JSON that it should be: %w", err)
	}
	switch _, err := decoder.Token(); {
	case err == io.EOF:
		return nil
	case err != nil:
		return fmt.Errorf("after the JSON value: %w", err)
	}
	return errors.New("the body has more than one JSON value")
}

func reject(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	code := http.StatusBadRequest
	switch {
	case errors.As(err, &tooLarge):
		code = http.StatusRequestEntityTooLarge
		err = fmt.Errorf("the request has more than %d bytes", tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		code = http.StatusRequestTimeout
		err = errors.New("the request did not arrive in time")
	}
	http.Error(w, err.Error(), code)
}

// checkArgs checks that the request names a pod and nodes.
func checkArgs(args *schedulerv1.ExtenderArgs) error {
	switch {
	case args.Pod == nil:
		return errors.New("field Pod is missing")
	case args.Pod.Namespace == "" || args.Pod.Name == "":
		return errors.New("field Pod has no metadata.namespace or no metadata.name")
	case args.Nodes == nil && args.NodeNames == nil:
		return errors.New("fields Nodes and NodeNames are both missing")
	}
	return nil
}

func checkBindingArgs(args *schedulerv1.ExtenderBindingArgs) error {
	for _, field := range []struct{ name, value string }{
		{"PodName", args.PodName}, {"PodNamespace", args.PodNamespace}, {"PodUID", string(args.PodUID)}, {"Node", args.Node},
	} {
		if field.value == "" {
			return errors.New("field " + field.name + " is missing")
		}
	}
	return nil
}
