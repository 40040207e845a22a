package accessmode_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pvbind/pvbind/accessmode"
)

// All sixteen sets against every way of being in use already.
func TestAllows(t *testing.T) {
	onePod := map[string]bool{"RWOP": true, "RWO,RWOP": true, "ROX,RWOP": true, "RWX,RWOP": true, "RWO,ROX,RWOP": true,
		"RWO,RWX,RWOP": true, "ROX,RWX,RWOP": true, "RWO,ROX,RWX,RWOP": true}
	for _, use := range []struct {
		users   []string
		another bool // somebody but "a" is among them
	}{
		{nil, false},
		{[]string{"a"}, false},
		{[]string{"b"}, true},
		{[]string{"a", "a"}, false},
		{[]string{"a", "b"}, true},
		{[]string{"b", "a"}, true},
		{[]string{"b", "c"}, true},
	} {
		for set := accessmode.Set(0); set < 16; set++ {
			t.Run(fmt.Sprintf("%s used by %v", set, use.users), func(t *testing.T) {
				assert.Equal(t, !use.another || !onePod[set.String()], set.AllowsPod("a", use.users...))
			})
		}
	}
}
