package dump

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
)

// chunk is the text of one YAML document, or of several JSON values that follow one another.
type chunk struct {
	text []byte
	line int // of the file that the text begins on, from 1
}

// split cuts a stream at its document markers. Every chunk comes without its marker and directives,
// so it holds one YAML document at most. It is a part of data. (The reader in apimachinery's util/yaml knows no "..." and
// no content behind "---", and its decoder drops what follows the first document of a text.)
func split(data []byte) []chunk {
	var chunks []chunk
	from, first := 0, 1 // where the text of the chunk begins, and on which line
	blank := true       // so far
	flush := func(to int) {
		if !blank {
			chunks = append(chunks, chunk{text: data[from:to:to], line: first})
		}
		blank = true
	}
	number, end := 0, 0
	for line := range bytes.Lines(data) {
		number++
		end += len(line)
		start := end - len(line)
		rest, starts := cutMarker(line, "---")
		_, ends := cutMarker(line, "...")
		switch {
		case starts:
			flush(start)
			content := withoutComment(rest)
			from, first = end-len(content), number
			blank = len(bytes.TrimSpace(content)) == 0
		case ends, blank && line[0] == '%': // a directive, such as %YAML 1.2
			flush(start)
			from, first = end, number+1
		case blank:
			blank = len(bytes.TrimSpace(line)) == 0
		}
	}
	flush(end)
	return chunks
}

// cutMarker reports whether the line is the marker, and what follows it there. "---x" is no marker.
func cutMarker(line []byte, marker string) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	if ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0) {
		return rest, true
	}
	return nil, false
}

// withoutComment drops a comment that is all there is behind a marker, but not the end of its line: the parser chokes on
// one behind a tab.
func withoutComment(rest []byte) []byte {
	if trimmed := bytes.TrimSpace(rest); len(trimmed) > 0 && trimmed[0] != '#' {
		return rest
	}
	return rest[len(bytes.TrimRight(rest, "\n")):]
}

// toUTF8 drops a byte order mark and decodes UTF-16, which PowerShell writes when output is redirected.
func toUTF8(data []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		order = binary.BigEndian
	default:
		return bytes.TrimPrefix(data, []byte("\uFEFF"))
	}
	var units []uint16
	for rest := data[2:]; len(rest) >= 2; rest = rest[2:] {
		units = append(units, order.Uint16(rest))
	}
	return []byte(string(utf16.Decode(units)))
}
