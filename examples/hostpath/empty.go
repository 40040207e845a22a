package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
)

// open opens the directory of that name. os.Root follows no link out of the root, but those within it, and the
// other volumes are there: so what was opened must be the directory that was seen under that name.
func open(root *os.Root, name string) (*os.Root, error) {
	seen, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, fmt.Errorf("%q is no directory but %s", name, seen.Mode())
	}
	dir, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := dir.Stat(".")
	if err == nil && !os.SameFile(seen, opened) {
		err = fmt.Errorf("%q was replaced while it was opened", name)
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// empty removes all that is in the directory of that name. It checks the context before each entry.
func empty(ctx context.Context, root *os.Root, name string) error {
	dir, err := open(root, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := dir.RemoveAll(entry.Name()); err != nil {
			return err
		}
	}
	return nil
}
