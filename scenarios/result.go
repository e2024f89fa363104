package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/reports/result"
	"napisim/scenarios/spec"
	"napisim/scenarios/strict"
	"napisim/sim"
	"napisim/sim/metric"
)

// Result returns what the run has measured. It is called after Run.
func (sys *System) Result() (result.Run, error) {
	now := sys.eng.Now()
	w := window{
		sys: sys, seconds: (now - sys.measured).Seconds(),
		raw: map[string]int64{}, metrics: map[string]result.Metric{}, histograms: map[string]result.Histogram{},
	}
	for _, r := range sys.set.Read(now) {
		w.raw[r.Name] = r.Count
		if r.Histogram != nil {
			name, _, _ := strings.Cut(r.Name, "/")
			w.merge(name, r.Histogram)
		}
	}
	if h := w.hists["work_per_poll"]; h != nil {
		w.raw[rawFrames] = int64(h.Sum())
		w.softFrames = w.raw[rawFrames]
		w.raw[rawFrames] += w.raw[rawBusyFrames]
	}
	w.throughput()
	w.overload()
	w.receivePath()
	w.transactions()
	w.cpu()
	if err := w.distributions(); err != nil {
		return result.Run{}, err
	}
	return result.Run{
		Seed: sys.seed, Kernel: sys.scenario.Kernel.Preset,
		Fingerprint:      fmt.Sprintf("%016x", sys.machine.Fingerprint.Sum()),
		SimulatedSeconds: now.Seconds(), MeasuredSeconds: w.seconds,
		Metrics: w.metrics, Histograms: w.histograms,
		Cores: w.cores(), Losses: w.losses(), Provenance: w.provenance(),
		Published: published(sys.scenario), Warnings: w.warnings,
	}, nil
}

// window computes the metrics of the measured part of a run.
type window struct {
	sys        *System
	seconds    float64
	raw        map[string]int64
	hists      map[string]*metric.Histogram
	metrics    map[string]result.Metric
	histograms map[string]result.Histogram
	softFrames int64 // of rawFrames, those that no busy poll took
	warnings   []string
}

func (w *window) merge(name string, h *metric.Histogram) {
	if w.hists == nil {
		w.hists = map[string]*metric.Histogram{}
	}
	if w.hists[name] == nil {
		w.hists[name] = &metric.Histogram{}
	}
	w.hists[name].Merge(h)
}

// set stores a metric with the unit and direction that reports know it by.
func (w *window) set(name string, value float64) {
	d, ok := result.Lookup(name)
	if !ok {
		panic("scenarios: metric without a definition: " + name)
	}
	w.metrics[name] = result.Metric{Value: value, Unit: d.Unit, Better: d.Better}
}

func (w *window) count(names ...string) {
	for _, name := range names {
		w.set(name, float64(w.raw[name]))
	}
}

func (w *window) rate(names ...string) {
	for _, name := range names {
		w.set(name, float64(w.raw[name])/w.seconds)
	}
}

// ratio stores a over b; without any b there is nothing to say.
func (w *window) ratio(name string, a, b int64) {
	if b > 0 {
		w.set(name, float64(a)/float64(b))
	}
}

func (w *window) throughput() {
	w.set("goodput", 8*float64(w.raw[rawBytesRead])/w.seconds)
	w.count(rawFrames, rawBytes, rawMissed, rawAcks, rawRetransmits)
	if w.raw[rawWritten] > 0 {
		w.count(rawWritten)
	}
	w.set("rcvbuf_errors", float64(w.raw["lost_"+model.DropUDPRcvbuf.String()]))
	w.ratio("gro_segments_per_frame", w.raw[rawSegments], w.raw[rawPackets])
	for name := range w.raw {
		if strings.HasPrefix(name, "page_pool_") || strings.HasPrefix(name, rawSKB) || strings.HasPrefix(name, rawTCP) {
			w.count(name)
		}
	}
}

// overload warns of traffic that its link cannot carry: what does not fit waits at the
// sender for ever and is no loss of the machine.
func (w *window) overload() {
	s := w.sys.scenario
	for _, name := range slices.Sorted(maps.Keys(s.Traffic)) {
		if t := s.Traffic[name]; t.Kind == spec.TrafficUDP && w.sys.veths[t.NIC] == nil && offeredRate(t) > lineRate(s, t) {
			w.warnings = append(w.warnings, fmt.Sprintf("traffic.%s offers %.4g frames per second, the link of %s carries %.4g",
				name, offeredRate(t), t.NIC, lineRate(s, t)))
		}
	}
}

func (w *window) receivePath() {
	w.rate(rawInterrupts, rawNetRX, rawRestarts, rawPolls, rawWakeups, rawSwitches)
	// A core that never left polling took all frames without a single interrupt.
	w.ratio("frames_per_interrupt", w.raw[rawFrames], max(w.raw[rawRXInterrupts], 1))
	if h := w.hists["work_per_poll"]; h != nil {
		w.ratio("work_per_poll", w.softFrames, h.Count())
	}
	w.count(rawSqueeze)
	if w.sys.usesBacklog() {
		w.rate(rawBacklogPolls, rawRPS)
	}
	if w.sys.scenario.BusyPolls() || len(w.sys.clients) > 0 {
		w.rate(rawBusyPolls)
		w.count(rawBusyFrames)
	}
}

// transactions are the metrics of requests and answers, where there are some.
func (w *window) transactions() {
	if len(w.sys.clients) == 0 {
		return
	}
	w.rate(rawTransactions)
	w.count(rawRetries)
	if h := w.hists["rtt"]; h.Count() > 0 {
		w.set("rtt_mean", h.Mean()*1e-12)
		for name, q := range map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99} {
			w.set("rtt_"+name, float64(h.Quantile(q))*1e-12)
		}
		w.set("rtt_max", float64(h.Max())*1e-12)
	}
}

func (w *window) distributions() error {
	units := map[string]struct {
		unit  string
		scale float64
	}{"latency": {"s", 1e-12}, "rtt": {"s", 1e-12}, "work_per_poll": {"frames", 1}, "gro_segments": {"frames", 1}}
	for name, h := range w.hists {
		if h.Count() == 0 {
			continue
		}
		u := units[name]
		enc, err := result.NewHistogram(u.unit, u.scale, h.HDR())
		if err != nil {
			return err
		}
		w.histograms[name] = enc
	}
	if h := w.hists["latency"]; h != nil && h.Count() > 0 {
		for name, q := range map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999} {
			w.set("latency_"+name, float64(h.Quantile(q))*1e-12)
		}
		w.set("latency_max", float64(h.Max())*1e-12)
	}
	return nil
}

// account returns the time charged to each context of a core in the window.
func (w *window) account(i int) (d [cpu.NumContexts]sim.Time) {
	for x, t := range w.sys.machine.Cores[i].Account() {
		d[x] = t - w.sys.accBase[i][x]
	}
	return d
}

func (w *window) cpu() {
	var all [cpu.NumContexts]float64
	var total float64
	for i := range w.sys.machine.Cores {
		for x, t := range w.account(i) {
			all[x] += t.Seconds()
			total += t.Seconds()
		}
	}
	w.set("cpu_busy", 1-all[cpu.Idle]/total)
	w.set("cpu_softirq", (all[cpu.Softirq]+all[cpu.Ksoftirqd])/total)
	w.set("cpu_hardirq", all[cpu.Hardirq]/total)
	w.set("cpu_task", (all[cpu.User]+all[cpu.System])/total)
}

func (w *window) cores() []result.Core {
	var cores []result.Core
	for i := range w.sys.machine.Cores {
		shares := map[string]float64{}
		for x, t := range w.account(i) {
			shares[cpu.Context(x).String()] = t.Seconds() / w.seconds
		}
		cores = append(cores, result.Core{CPU: i, Shares: shares})
	}
	return cores
}

func (w *window) losses() []result.Loss {
	var all []result.Loss
	for r := range model.NumDropReasons {
		if n := w.raw["lost_"+r.String()]; n > 0 {
			all = append(all, result.Loss{Place: r.Place(), Reason: r.String(), Counter: r.Counter(), Count: n})
		}
	}
	return all
}

// provenance adds up the CPU time of each stage by how its cost is known. Time that
// the scenario itself states, such as a CPU hog's, is not part of it.
func (w *window) provenance() []result.Provenance {
	platform := &w.sys.scenario.Platform
	byKind := map[result.Kind]*result.Provenance{}
	var total float64
	for stage := range model.NumStages {
		var d sim.Time
		for i, c := range w.sys.machine.Cores {
			d += c.Costs()[stage] * sim.Time(c.Spent()[stage]-w.sys.spentBase[i][stage])
		}
		if d == 0 {
			continue
		}
		cost := platform.Costs[stage.String()]
		kind := result.Kind(cost.Kind)
		if byKind[kind] == nil {
			byKind[kind] = &result.Provenance{Kind: kind}
		}
		p := byKind[kind]
		p.Seconds += d.Seconds()
		total += d.Seconds()
		entry := result.StageCost{Stage: stage.String(), Seconds: d.Seconds(), Source: cost.Source}
		if cost.Rows != "" {
			entry.Rows = []string{cost.Rows}
		}
		p.Stages = append(p.Stages, entry)
	}
	var all []result.Provenance
	for _, kind := range result.Kinds() {
		if p := byKind[kind]; p != nil {
			p.Share = p.Seconds / total
			slices.SortStableFunc(p.Stages, func(a, b result.StageCost) int {
				if a.Seconds > b.Seconds {
					return -1
				}
				return 1
			})
			all = append(all, *p)
		}
	}
	return all
}

// published returns the published figures that were measured under the conditions
// of this very scenario: every assignment of their variant holds.
func published(s *spec.Scenario) []result.Published {
	tree := strict.Tree(*s)
	var rows []result.Published
	for _, e := range s.Evidence {
		if !holds(tree, e.Assignments()) {
			continue
		}
		d, _ := result.Lookup(e.Metric)
		rows = append(rows, result.Published{
			Source: e.Source, Metric: e.Metric, Value: e.Value, Unit: d.Unit,
			Role: result.Role(e.Role), Note: e.Note,
		})
	}
	return rows
}

// holds reports whether every assignment "path=value" is true of the scenario.
func holds(tree *strict.Node, assignments []string) bool {
	for _, a := range assignments {
		path, value, _ := strings.Cut(a, "=")
		if text, ok := lookup(tree, path); !ok || text != value {
			return false
		}
	}
	return true
}

// lookup returns the scalar at a path. Keys may contain dots themselves, as those
// of sysctls do, so every split of the path is tried.
func lookup(n *strict.Node, path string) (string, bool) {
	if n == nil {
		return "", false
	}
	if path == "" {
		return n.Text()
	}
	for end := len(path); end > 0; end = strings.LastIndexByte(path[:end], '.') {
		if child := n.Get(path[:end]); child != nil {
			return lookup(child, strings.TrimPrefix(path[end:], "."))
		}
	}
	return "", false
}
