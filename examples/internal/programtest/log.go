package programtest

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
)

// Log is what a program logs as JSON, to be read while it runs.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Find is a field of the first line with this message; "" if there is none.
func (l *Log) Find(message, field string) string {
	for line := range strings.Lines(l.String()) {
		var said map[string]any
		if json.Unmarshal([]byte(line), &said) == nil && said["msg"] == message {
			value, _ := said[field].(string)
			return value
		}
	}
	return ""
}
