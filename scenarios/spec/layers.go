package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"napisim/model/unit"
	"napisim/scenarios/faults"
	"napisim/scenarios/strict"
)

// A reader reads the layers of one scenario and collects what is wrong with them.
type reader struct {
	Loader
	sources map[string]*source // by the name in positions
	found   faults.List
}

func (r *reader) fault(pos faults.Position, path string, err error) {
	f := faults.Fault{Position: pos, Path: path, Text: err.Error()}
	if unknown, ok := errors.AsType[*unknownError](err); ok {
		f.Text, f.Suggestion = unknown.reason(), unknown.near
	}
	r.found = append(r.found, f)
}

// layers reads a document of type T and lays it over its bases; nil where that failed.
// Below holds the documents that led here, so that a circle is seen.
func layers[T any](r *reader, s shelf, src *source, below []string) *strict.Node {
	r.sources[src.name] = src
	n, found := strict.Parse(src.name, src.text)
	r.found = append(r.found, found...)
	if n == nil {
		return nil
	}
	if f := misfit(s, n); f != nil {
		r.found = append(r.found, *f)
		return nil
	}
	return over[T](r, s, n, append(slices.Clip(below), src.name))
}

// misfit returns why a document is not what it was taken for, nil if it is: every
// field of another format would be unknown.
func misfit(s shelf, n *strict.Node) *faults.Fault {
	f := &faults.Fault{Position: n.Pos}
	version := n.Get("napisim")
	switch {
	case !n.IsMapping():
		f.Text = "is not a mapping of fields"
	case s != scenarioShelf:
		return nil
	case version == nil:
		f.Path, f.Text = "napisim", fmt.Sprintf("is missing: a scenario starts with \"napisim: %d\", the version of its format", Version)
	case !versioned(n):
		text, _ := version.Text()
		f.Position, f.Path = version.Pos, "napisim"
		f.Text = fmt.Sprintf("version %q of the format is not known; this program reads version %d", text, Version)
	default:
		return nil
	}
	return f
}

// over lays a document that may name a base over that base, and that over its own.
func over[T any](r *reader, s shelf, n *strict.Node, below []string) *strict.Node {
	base := n.Get("base")
	name, ok := base.Text()
	if !ok {
		return n // none, or something that Decode will refuse
	}
	src, err := r.open(s, name, r.sources[base.Pos.File])
	if err != nil {
		r.fault(base.Pos, "base", err)
		return nil
	}
	if i := slices.Index(below, src.name); i >= 0 {
		circle := strings.Join(append(below[i:], src.name), " -> ")
		r.fault(base.Pos, "base", errors.New("the bases go in a circle: "+circle))
		return nil
	}
	under := layers[T](r, s, src, below)
	if under == nil {
		return nil
	}
	return strict.Merge[T](under, n.Without("base"))
}

// platform puts the platform that a scenario names in the place of the name.
func (r *reader) platform(n *strict.Node) *strict.Node {
	given := n.Get("platform")
	if given == nil {
		return n
	}
	before := len(r.found)
	whole := over[Platform](r, platformShelf, given, nil)
	for i := range r.found[before:] {
		r.found[before+i].Path = "platform"
	}
	if whole == nil {
		return n
	}
	return n.With("platform", whole)
}

// kernel lays a scenario over the choices and settings of its kernel preset.
func (r *reader) kernel(n *strict.Node) *strict.Node {
	preset := n.Get("kernel").Get("preset")
	name, ok := preset.Text()
	if !ok {
		return n
	}
	src, err := r.open(presetShelf, name, r.sources[preset.Pos.File])
	if err != nil {
		r.fault(preset.Pos, "kernel.preset", err)
		return n
	}
	own := reader{Loader: r.Loader, sources: map[string]*source{}}
	_, document := own.preset(src)
	for _, f := range own.found {
		f.Path, f.Text = "kernel.preset", join(f.Path, f.Text)
		r.found = append(r.found, f)
	}
	if document == nil {
		return n
	}
	kernel := strict.Under("behaviours", document.Get("behaviours"))
	under := strict.Under("kernel", kernel)
	if settings := document.Get("sysctl"); settings != nil {
		under = under.With("sysctl", settings)
	}
	return strict.Merge[Scenario](under, n)
}

// complete fills in what an absent field is derived from others.
func (s *Scenario) complete(given strict.Positions, stem string) {
	if s.Name == "" {
		s.Name = stem
	}
	if s.HZ == 0 {
		s.HZ = s.Platform.HZ
	}
	if s.Preempt == "" {
		s.Preempt = s.Platform.Preempt
	}
	if s.Sysctl.NetdevBudgetUsecs == 0 {
		s.Sysctl.NetdevBudgetUsecs = s.defaultBudgetUsecs()
	}
	for name, nic := range s.NICs {
		if !given.Has("nics." + name + ".irq.tx") {
			nic.IRQ.TX = nic.IRQ.RX
		}
		if !given.Has("nics." + name + ".napi.thread_cpu") {
			nic.NAPI.ThreadCPU = nic.IRQ.RX
		}
		if !given.Has("nics." + name + ".features.rx") {
			nic.Features.RX = nic.Driver != DriverLAN966x
		}
		if nic.PagePool.Size == 0 {
			nic.PagePool.Size = min(nic.Rings.RX, maxPagePool)
		}
		s.NICs[name] = nic
	}
	for name, app := range s.Apps {
		if app.Kind.reads() && !given.Has("apps."+name+".busy_poll") {
			app.BusyPoll = s.Sysctl.BusyRead
			if app.Wait == WaitEpoll {
				app.BusyPoll = s.Sysctl.BusyPoll
			}
			s.Apps[name] = app
		}
	}
	for name, t := range s.Traffic {
		if nic, ok := s.NICs[t.NIC]; ok && t.Kind == TrafficTCP && t.MSS == 0 {
			t.MSS = unit.Bytes(nic.MTU - t.ipHeader() - tcpHeader - tcpTimestamps)
			s.Traffic[name] = t
		}
	}
}

// maxPagePool is the largest recycle ring that the kernel creates.
const maxPagePool = 32768

// defaultBudgetUsecs returns what the kernel sets net.core.netdev_budget_usecs to, 0 if
// that cannot be known.
func (s *Scenario) defaultBudgetUsecs() unit.Duration {
	if s.Kernel.Behaviours[NetdevBudgetUsecs] == Fixed2000 {
		return 2000 * unit.Microsecond
	}
	if s.HZ > 0 {
		return twoTicks(s.HZ)
	}
	return 0
}
