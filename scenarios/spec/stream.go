package spec

import "napisim/scenarios/strict"

// ResolveText is Resolve for a scenario that stands in no file, such as one that comes
// through a pipe. Name is what faults call it, and the scenario if it has no name of its
// own; files that it mentions are looked for beside a file of that name.
func (l Loader) ResolveText(name string, text []byte, sets []string) (*Scenario, error) {
	src := &source{name: name, path: name, text: text}
	r := reader{Loader: l, sources: map[string]*source{}}
	n := layers[Scenario](&r, scenarioShelf, src, nil)
	if n == nil {
		return nil, r.found.Err()
	}
	parsed := r.found
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
