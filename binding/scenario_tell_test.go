package binding_test

import (
	"context"
	"strings"
)

// tell plays a script and returns the file as it should read, and every invariant that did not hold. An
// error is about the script itself.
func tell(ctx context.Context, script script) (told string, violations []string, err error) {
	stage := newStage(ctx)
	var text strings.Builder
	for _, block := range script.blocks {
		for _, line := range block.lines {
			text.WriteString(line + "\n")
		}
		switch block.kind {
		case table:
			err = stage.createAll(&script, block)
		case command:
			var printed []string
			printed, err = stage.do(strings.TrimPrefix(block.lines[0], prompt))
			for _, line := range printed {
				text.WriteString(strings.TrimRight(indent+line, " ") + "\n")
			}
			if err != nil {
				err = script.fault(block.line, "%v", err)
			}
		}
		if err != nil {
			return text.String(), stage.violations, err
		}
	}
	stage.checkEnd()
	return text.String(), stage.violations, nil
}

// createAll makes the objects of a table: creates them, or takes them over as they stand.
func (s *stage) createAll(script *script, block block) error {
	kind, columns, err := headerOf(block.lines[0])
	if err != nil {
		return script.fault(block.line, "%v", err)
	}
	for i, row := range block.lines[1:] {
		object, err := kind.object(columns, strings.Fields(row))
		if err == nil && kind.verbatim(columns) {
			err = s.server.Load(object)
		} else if err == nil {
			_, err = s.server.Create(s.ctx, object)
		}
		if err != nil {
			return script.fault(block.line+1+i, "%v", err)
		}
	}
	s.printed = len(s.server.Calls())
	return nil
}
