package spec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"napisim/model/unit"
	"napisim/scenarios/faults"
	"napisim/scenarios/strict"
)

// A shelf is one directory of a library.
type shelf struct {
	dir  string
	noun string // what stands on it
}

var (
	scenarioShelf = shelf{"library", "scenario"}
	presetShelf   = shelf{"kernels", "kernel preset"}
	platformShelf = shelf{"platforms", "platform"}
)

// maxFile bounds what is read of a file that is none of ours, such as a disk.
const maxFile = 1 << 20

// A Loader reads scenarios, kernel presets and platforms. A name is looked up as a file
// first, relative to the file that mentions it, then as that file with the suffix
// .yaml, then in the library. One with a slash or with the suffix can only be a file.
type Loader struct {
	// Library holds the directories library, kernels and platforms.
	Library fs.FS
	// Stages are the names of the cost stages of the model. Without them the costs of a
	// platform are not checked for completeness.
	Stages []string
}

// Resolve reads a scenario, lays it over its bases, its kernel preset and its platform,
// applies the assignments ("path=value") in order, fills in all defaults and checks the
// result. The error is a faults.List unless the scenario could not be read at all.
func (l Loader) Resolve(name string, sets []string) (*Scenario, error) {
	src, err := l.open(scenarioShelf, name, nil)
	if err != nil {
		return nil, err
	}
	return l.resolve(src, sets)
}

// ResolveText is Resolve for a scenario that stands in no file, such as one that comes
// through a pipe. Name is what faults call it, and the scenario if it has no name of its
// own; files that it mentions are looked for beside a file of that name.
func (l Loader) ResolveText(name string, text []byte, sets []string) (*Scenario, error) {
	return l.resolve(&source{name: name, path: name, text: text}, sets)
}

func (l Loader) resolve(src *source, sets []string) (*Scenario, error) {
	r := reader{Loader: l, sources: map[string]*source{}}
	n := layers[Scenario](&r, scenarioShelf, src, nil)
	if n == nil {
		return nil, r.found.Err() // a layer is missing: everything else would be guesses
	}
	parsed := r.found // such as a key given twice, which explains no other fault
	r.found = nil
	for i, set := range sets {
		changed, found := strict.Set[Scenario](n, i+1, set)
		n, r.found = changed, append(r.found, found...)
	}
	n = r.kernel(r.platform(strict.Expand[Scenario](n)))
	s, given, found := strict.Decode[Scenario](n)
	s.complete(given, src.stem())
	found = r.found.And(found).And(given.Locate(s.relations(l.Stages)))
	if err := append(parsed, found...).Err(); err != nil {
		return nil, err
	}
	return &s, nil
}

// Platform reads a platform and lays it over its bases. The error is as that of Resolve.
func (l Loader) Platform(name string) (*Platform, error) {
	src, err := l.open(platformShelf, name, nil)
	if err != nil {
		return nil, err
	}
	r := reader{Loader: l, sources: map[string]*source{}}
	n := layers[Platform](&r, platformShelf, src, nil)
	if n == nil {
		return nil, r.found.Err()
	}
	p, given, found := strict.Decode[Platform](n)
	found = append(r.found, found...)
	if err := found.And(given.Locate(p.checkStages(l.Stages))).Err(); err != nil {
		return nil, err
	}
	return &p, nil
}

// Preset reads a kernel preset. The error is as that of Resolve.
func (l Loader) Preset(name string) (*Preset, error) {
	src, err := l.open(presetShelf, name, nil)
	if err != nil {
		return nil, err
	}
	r := reader{Loader: l, sources: map[string]*source{}}
	p, _ := r.preset(src)
	if p == nil {
		return nil, r.found.Err()
	}
	return p, nil
}

// A Lineage is where the choices of a kernel preset come from.
type Lineage struct {
	// Base is the preset below as it is named, "" if there is none, and Under what it
	// amounts to.
	Base  string
	Under *Preset
	// Files are those that the choices and settings come from, by path: the preset's own
	// or that of a base.
	Files map[string]string
}

// Lineage returns where the choices of a kernel preset come from. The error is as that of
// Resolve.
func (l Loader) Lineage(name string) (Lineage, error) {
	var line Lineage
	src, err := l.open(presetShelf, name, nil)
	if err != nil {
		return line, err
	}
	r := reader{Loader: l, sources: map[string]*source{}}
	n := layers[Preset](&r, presetShelf, src, nil)
	_, given, _ := strict.Decode[Preset](n)
	own, _ := strict.Parse(src.name, src.text)
	if err := r.found.Err(); err != nil {
		return line, err
	}
	line.Files = map[string]string{}
	for path, at := range given {
		line.Files[path] = at.File
	}
	if line.Base, _ = own.Get("base").Text(); line.Base == "" {
		return line, nil
	}
	below, err := l.open(presetShelf, line.Base, src)
	if err != nil {
		return line, err
	}
	line.Under, _ = r.preset(below)
	return line, r.found.Err()
}

// preset reads a kernel preset, lays it over its bases, and returns the document of
// that, too; nil where something is wrong.
func (r *reader) preset(src *source) (*Preset, *strict.Node) {
	n := layers[Preset](r, presetShelf, src, nil)
	if n == nil {
		return nil, nil
	}
	p, given, found := strict.Decode[Preset](n)
	r.found = append(r.found, found.And(given.Locate(checkBehaviours(p.Behaviours, "behaviours", "behaviours")))...)
	if len(r.found) > 0 {
		return nil, nil
	}
	return &p, n
}

// A source is a file that was read.
type source struct {
	name     string // as it is shown
	path     string // where it was read
	embedded bool   // from the library, not from disk
	text     []byte
}

// stem is the name of the file without directory and suffix, fit to name a scenario.
func (s *source) stem() string {
	base := path.Base(filepath.ToSlash(s.path))
	return notFileName.ReplaceAllString(strings.TrimSuffix(base, path.Ext(base)), "-")
}

var notFileName = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// open finds and reads what a name stands for. From is the file that mentions it, nil
// for the command line.
func (l Loader) open(s shelf, name string, from *source) (*source, error) {
	embedded := from != nil && from.embedded
	if strings.ContainsAny(name, `/\`) || path.Ext(name) == ".yaml" || path.Ext(name) == ".yml" {
		return l.read(beside(from, name), embedded)
	}
	var directory error
	if !embedded && name != "" {
		for _, near := range []string{beside(from, name), beside(from, name+".yaml")} {
			if from != nil && near == from.path {
				continue // a file that extends the library's entry of its own name
			}
			src, err := l.read(near, false)
			switch {
			case errors.Is(err, errDirectory):
				directory = err // a directory may be called like an entry of the library
			case !errors.Is(err, fs.ErrNotExist):
				return src, err
			}
		}
	}
	src, err := l.read(path.Join(s.dir, name+".yaml"), true)
	switch {
	case err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid):
		return src, err
	case directory != nil:
		return nil, directory
	}
	known, err := l.names(s)
	if err != nil {
		return nil, err
	}
	return nil, &unknownError{noun: s.noun, name: name, near: faults.Nearest(name, known)}
}

// beside returns the path of a file that another one names.
func beside(from *source, name string) string {
	switch {
	case from == nil || !from.embedded && filepath.IsAbs(name):
		return filepath.Clean(name)
	case from.embedded:
		return path.Join(path.Dir(from.path), name)
	}
	return filepath.Join(filepath.Dir(from.path), name)
}

// errDirectory tells a directory from a file that cannot be read.
var errDirectory = errors.New("is a directory, not a file")

// read reads one file, from disk or from the library.
func (l Loader) read(name string, embedded bool) (*source, error) {
	var file fs.File
	var err error
	shown := name
	if embedded {
		shown = "napisim:" + name
		file, err = l.Library.Open(name)
	} else {
		file, err = os.Open(name)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	if info, err := file.Stat(); err != nil {
		return nil, err
	} else if info.IsDir() {
		return nil, fmt.Errorf("%s: %w", shown, errDirectory)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s: is larger than %v", shown, unit.Bytes(maxFile))
	}
	return &source{name: shown, path: name, embedded: embedded, text: text}, nil
}

// An unknownError says that a name stands for nothing.
type unknownError struct {
	noun, name string
	near       string // what was probably meant, or ""
}

// Error returns the name and what it is not.
func (e *unknownError) Error() string {
	if e.near == "" {
		return e.reason()
	}
	return fmt.Sprintf("%s (did you mean %q?)", e.reason(), e.near)
}

func (e *unknownError) reason() string {
	return fmt.Sprintf("there is no file %q and no %s of this name", e.name, e.noun)
}

// Unwrap makes the error one of those that a caller knows from files.
func (e *unknownError) Unwrap() error { return fs.ErrNotExist }

// names returns the names on a shelf of the library, sorted.
func (l Loader) names(s shelf) ([]string, error) {
	files, err := fs.Glob(l.Library, s.dir+"/*.yaml")
	if err != nil {
		return nil, err
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(path.Base(file), ".yaml")
	}
	slices.Sort(files)
	return files, nil
}

// An Entry is what a list of the library shows of one file.
type Entry struct {
	Name    string
	Summary string
	Version string // of Linux, for a kernel preset
}

// Scenarios lists the scenarios of the library.
func (l Loader) Scenarios() ([]Entry, error) { return l.list(scenarioShelf) }

// Presets lists the kernel presets of the library, oldest first.
func (l Loader) Presets() ([]Entry, error) {
	all, err := l.list(presetShelf)
	slices.SortStableFunc(all, func(a, b Entry) int { return CompareVersions(a.Version, b.Version) })
	return all, err
}

// CompareVersions orders versions of Linux by the numbers in them: 5.4 before 5.12.
func CompareVersions(a, b string) int {
	return slices.Compare(versionNumbers(a), versionNumbers(b))
}

// versionNumbers returns the numbers in a version, from left to right.
func versionNumbers(version string) []int {
	var all []int
	for _, digits := range strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.Atoi(digits); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// Platforms lists the platforms of the library.
func (l Loader) Platforms() ([]Entry, error) { return l.list(platformShelf) }

func (l Loader) list(s shelf) ([]Entry, error) {
	known, err := l.names(s)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, name := range known {
		src, err := l.read(path.Join(s.dir, name+".yaml"), true)
		if err != nil {
			return nil, err
		}
		n, found := strict.Parse(src.name, src.text)
		if err := found.Err(); err != nil {
			return nil, err
		}
		summary, _ := n.Get("summary").Text()
		version, _ := n.Get("version").Text()
		entries = append(entries, Entry{Name: name, Summary: summary, Version: version})
	}
	return entries, nil
}
