package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"napisim/reports/result"
)

// A directory is where --out puts results. A nil one puts them nowhere.
type directory struct {
	path    string
	created bool
}

// openDirectory makes sure that results can be put into a directory, before the work
// that is to give them; "" stands for none.
func openDirectory(path string) (*directory, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // no directory is what was asked for
	}
	_, err := os.Stat(path)
	created := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	probe, err := os.CreateTemp(path, ".napisim-*.tmp")
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be written to: %w", path, err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, err
	}
	return &directory{path, created}, nil
}

// abandon removes a directory that was created for results that never came.
func (d *directory) abandon() {
	if d != nil && d.created {
		_ = os.Remove(d.path) // it stays if something is in it
	}
}

// A file is what --out writes under one name.
type file struct {
	name string
	data []byte
}

// write puts files into the directory. Each of them appears whole or not at all.
func (d *directory) write(files ...file) error {
	if d == nil {
		return nil
	}
	for _, f := range files {
		if err := result.ReplaceFile(filepath.Join(d.path, f.name), f.data); err != nil {
			return err
		}
	}
	return nil
}
