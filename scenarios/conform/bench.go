package conform

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/cpu/fair"
	"napisim/model/host"
	"napisim/model/skbuff"
	"napisim/nic/driver"
	"napisim/nic/driver/guest"
	"napisim/nic/driver/virtual"
	"napisim/nic/emulated"
	"napisim/scenarios"
	"napisim/scenarios/recording"
	"napisim/scenarios/recording/input"
	"napisim/scenarios/spec"
	"napisim/sim"
	"napisim/sim/trace"
	"napisim/softirq"
	"napisim/softirq/gro"
	"napisim/softirq/rps"
	"napisim/softirq/stack"
)

// The phases of events: devices before cores, as in scenarios.
const (
	phaseNICs  sim.Phase = 64
	phaseMarks sim.Phase = 255
)

// maxEvents bounds the trace of a simulation.
const maxEvents = 5_000_000

// A bench is the machine of a recording.
type bench struct {
	rec       *recording.Recording
	in        *input.Input
	runs      []pktgenRun
	prices    prices
	shift     int64 // by which senders begin later than their thread
	tickPhase sim.Time
	start     int64 // ns of the trace at which simulated time begins

	firstSend int64 // ns of the trace: the first sign of what a process sends
	sender    int   // the process's PID in the recording

	behaviours map[string]string

	eng      *sim.Engine
	machine  *cpu.Machine
	env      host.Env
	stack    *stack.Stack
	softnets []*softirq.Softnet
	busy     *softirq.BusyPoller
	na, nb   *guest.Netdev
	memory   *guest.Memory
	veth     *virtual.Veth // from the sender
	vethBack *virtual.Veth
	tap      *virtual.Tun
	pktgen   map[int]*cpu.Task // by PID in the recording
	log      *trace.Log
}

// lead is how long before the sender begins the simulation does.
const lead = 20_000_000

// build makes the machine of a recording; the caller must close it.
// Senders begin shift nanoseconds after their input says.
func build(r *recording.Recording, shift int64) (*bench, error) {
	b := &bench{rec: r, shift: shift, eng: sim.NewEngine(sim.Lazy), pktgen: map[int]*cpu.Task{}}
	b.env = host.Env{SKBs: &model.SKBPool{}, Losses: &model.Losses{}}
	for _, step := range []func() error{b.inputs, b.buildMachine, b.buildKernel, b.buildDevices, b.buildReader, b.buildHog, b.buildSender, b.buildNoise} {
		if err := step(); err != nil {
			b.close()
			return nil, err
		}
	}
	return b, nil
}

func (b *bench) close() { b.eng.Close() }

// at converts an instant of the trace.
func (b *bench) at(t int64) sim.Time { return ns(t - b.start) }

func (b *bench) inputs() (err error) {
	if b.rec.CPUs != 1 {
		return fmt.Errorf("%d CPUs: such machines ran in host time", b.rec.CPUs)
	}
	if b.rec.HZ <= 0 {
		return errors.New("the tick rate is not known")
	}
	b.in = input.Of(b.rec)
	if b.prices, err = pricesOf(b.rec); err != nil {
		return err
	}
	first := b.in.End
	if b.rec.Sender.Role == "pktgen" {
		if b.runs, err = pktgenRuns(b.rec, b.in); err != nil {
			return err
		}
		first = b.runs[0].start
	} else if e := firstSign(b.rec); e != nil {
		first, b.firstSend, b.sender = e.At, e.At, e.PID
	}
	if streams(b.rec) {
		first = firstFrame(b.in)
	}
	b.start = max(first-lead, 0)
	return nil
}

func (b *bench) buildMachine() error {
	tick := int64(1e9) / int64(b.rec.HZ)
	preempt := cpu.PreemptVoluntary
	if b.rec.Kernel.Preempt != "" {
		var err error
		if preempt, err = cpu.ParsePreemption(b.rec.Kernel.Preempt); err != nil {
			return err
		}
	}
	preset, err := scenarios.Default().Preset(b.rec.Kernel.Preset)
	if err != nil {
		return err
	}
	b.behaviours = preset.Behaviours
	scheduler, err := fair.Parse(b.behaviours[spec.Scheduler])
	if err != nil {
		return err
	}
	b.tickPhase = ns(((b.in.Tick.Phase-tickToRaise-b.start)%tick + tick) % tick)
	cfg := cpu.Config{
		PreemptRT: b.rec.Kernel.RT, Scheduler: scheduler,
		Cores: b.rec.CPUs, HZ: b.rec.HZ, Preempt: preempt, Costs: b.prices.stages, TraceCost: b.prices.event,
		TickPhase: b.tickPhase,
	}
	if err := errors.Join(cfg.Validate()...); err != nil {
		return err
	}
	b.machine = cpu.NewMachine(b.eng, cfg)
	b.log = trace.NewLog(0, sim.Never, maxEvents)
	b.log.Select(b.points()...)
	b.machine.Trace = b.log
	return nil
}

// points returns the events that the recording traced, as each cost time there, and those
// that the comparison needs.
func (b *bench) points() []trace.Point {
	points := []trace.Point{trace.IRQHandlerEntry, trace.IRQHandlerExit, trace.SoftirqRaise, trace.SoftirqEntry, trace.SoftirqExit, trace.NAPIPoll}
	for name := range traced(b.rec) {
		if p, err := trace.ParsePoint(name); err == nil && !slices.Contains(points, p) {
			points = append(points, p)
		}
	}
	return points
}

func (b *bench) buildKernel() error {
	s := &spec.Scenario{HZ: spec.HZ(b.rec.HZ)}
	s.Kernel.Behaviours, s.Kernel.PreemptRT = b.behaviours, b.rec.Kernel.RT
	s.Sysctl.NetdevBudget = b.sysctl("net.core.netdev_budget", 300)
	s.Sysctl.GRONormalBatch = b.sysctl("net.core.gro_normal_batch", 8)
	s.Sysctl.NetdevMaxBacklog = b.sysctl("net.core.netdev_max_backlog", 1000)
	s.Sysctl.DevWeight = b.sysctl("net.core.dev_weight", 64)
	s.Sysctl.DevWeightRXBias = b.sysctl("net.core.dev_weight_rx_bias", 1)
	s.Sysctl.FlowLimitTableLen = b.sysctl("net.core.flow_limit_table_len", 4096)
	cfg := scenarios.KernelConfig(s)
	cfg.NetdevBudgetUsecs = sim.Time(b.sysctl("net.core.netdev_budget_usecs", 0)) * sim.Microsecond
	if err := errors.Join(cfg.Validate()...); err != nil {
		return err
	}
	b.buildMemory()
	b.stack = stack.New(&b.env)
	b.stack.RouteHint = b.behaviours[spec.IPList] == spec.RouteHint
	for _, c := range b.machine.Cores {
		b.softnets = append(b.softnets, softirq.NewSoftnet(c, cfg, b.stack, b.env.SKBs))
		b.softnets[c.ID].SetHeads(b.env.Heads)
	}
	b.busy = softirq.NewBusyPoller(b.softnets)
	return nil
}

// buildMemory makes what skbs come from, as the traffic found it.
func (b *bench) buildMemory() {
	m := &b.prices.memory
	heads := skbuff.Config{
		Cache: b.behaviours[spec.SKBCache], Defer: b.behaviours[spec.SKBDeferFree], DeferMax: 64, SlabPage: ns(m.SlabPage),
	}
	b.env.Heads = skbuff.New(heads, b.machine, b.env.SKBs)
	sent := skbuff.SentConfig{
		DataPage: ns(m.DataPage), ClonePage: ns(m.ClonePage), DataObjects: m.DataObjects, Data: m.Data, Clones: m.Clones,
		LinearPage: b.prices.stages[model.StagePageSlow], Linear: m.Linear,
	}
	if streams(b.rec) {
		m.Owed = 0
		sent.Slab = m.Slab
	}
	b.env.Heads.Stock(b.machine.Cores[0], m.Cached, m.Owed)
	b.env.Heads.StockSent(b.machine.Cores[0], sent)
	b.memory = &guest.Memory{HeadPage: ns(m.HeadPage), FreePage: ns(m.FreePage), Heads: m.Heads}
}

// sysctl returns a number of the recording's settings.
func (b *bench) sysctl(name string, otherwise int) int {
	n := 0
	if _, err := fmt.Sscan(b.rec.Sysctls[name], &n); err != nil {
		return otherwise
	}
	return n
}

func (b *bench) buildDevices() error {
	softirq.Connect(b.softnets, softirq.Links{Drop: b.env.Drop, RPS: b.rps()})
	h := driver.Host{Machine: b.machine, Softnets: b.softnets, SKBs: b.env.SKBs, Losses: b.env.Losses, Heads: b.env.Heads}
	switch b.rec.Topology {
	case "nic":
		return b.buildNICs(h)
	case "veth":
		return b.buildVeth(h)
	case "tun":
		return b.buildTap(h)
	}
	return fmt.Errorf("topology %q cannot be simulated", b.rec.Topology)
}

func (b *bench) buildNICs(h driver.Host) error {
	if len(b.rec.Devices) != 2 {
		return fmt.Errorf("%d network devices instead of two", len(b.rec.Devices))
	}
	// Lines of the receiver come first: of interrupts that are pending together the guest
	// takes the one with the higher number.
	open := make([]func(), 2)
	ports := make([]*emulated.Port, 2)
	for _, i := range []int{1, 0} {
		dev := &b.rec.Devices[i]
		netdev, up, err := b.buildDevice(dev, phaseNICs+sim.Phase(i), h)
		if err != nil {
			return fmt.Errorf("%s: %w", dev.Name, err)
		}
		if dev.Threaded {
			if err := netdev.NAPI().SetThreaded(b.softnets[0], softirq.Threaded); err != nil {
				return fmt.Errorf("%s: %w", dev.Name, err)
			}
		}
		b.busy.Add(netdev.NAPI())
		ports[i], open[i] = netdev.Port(), up
		if i == 0 {
			b.na = netdev
		} else {
			b.nb = netdev
		}
	}
	guest.OpenNetTX(b.softnets[0], b.na, b.nb)
	emulated.Join(ports[0], ports[1])
	for _, up := range open {
		up()
	}
	return nil
}

// defaultRing is the size of all rings of the three drivers where nobody changed it.
const defaultRing = 256

func (b *bench) buildDevice(dev *recording.Device, phase sim.Phase, h driver.Host) (*guest.Netdev, func(), error) {
	devCfg := emulated.Config{RXRing: cmp.Or(dev.RingRX, defaultRing), TXRing: cmp.Or(dev.RingTX, defaultRing), NoMitigation: !b.rec.NIC.Mitigation()}
	cfg, err := b.driverConfig(dev)
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(slices.Concat(devCfg.Validate(), cfg.Validate())...); err != nil {
		return nil, nil, err
	}
	switch b.rec.NIC.Model {
	case "e1000":
		d := guest.NewE1000(cfg, h, emulated.NewE1000(b.eng, phase, devCfg))
		return d.Netdev, d.Open, nil
	case "e1000e":
		d := guest.NewE1000E(cfg, h, emulated.NewE1000E(b.eng, phase, devCfg))
		return d.Netdev, d.Open, nil
	case "virtio-net-pci":
		d := guest.NewVirtio(cfg, h, emulated.NewVirtio(b.eng, phase, devCfg))
		return d.Netdev, d.Open, nil
	}
	return nil, nil, fmt.Errorf("no model of a NIC %s", b.rec.NIC.Model)
}

// verifies reports whether a device verifies checksums. Virtio_net says so in any case; the
// recordings' devices have none of it, in no direction.
func verifies(nic string, dev *recording.Device) bool {
	return dev.Features["rx-checksumming"] && (nic != "virtio-net-pci" || dev.Features["tx-checksumming"])
}

func (b *bench) driverConfig(dev *recording.Device) (guest.Config, error) {
	cfg := guest.Config{
		Memory: b.memory,
		Name:   dev.Name, RXCsum: verifies(b.rec.NIC.Model, dev), NoSG: !dev.Features["scatter-gather"],
		FixedITR: dev.Coalesce["rx-usecs"] == 0 && dev.Coalesce != nil, BQL: b.rec.NIC.Model != "virtio-net-pci" || b.rec.Kernel.Preset != "v6.1", // virtio_net has them since v6.11
	}
	for _, q := range b.rec.IRQs {
		if q.Dev != dev.Name {
			continue
		}
		switch {
		case q.Queue == "tx":
			cfg.TXIRQ, cfg.TXIRQName = q.Number, q.Name
		case q.Queue == "rx", b.rec.NIC.Model == "e1000": // e1000e has a third, for other causes
			cfg.RXIRQ, cfg.RXIRQName = q.Number, q.Name
		}
	}
	if b.rec.Sender.Role == "pktgen" {
		cfg.BQLMin = guest.BQLMax // the harness lifts the limits where pktgen sends
	}
	cfg.GROFlushTimeout, cfg.DeferHardIRQs = ns(dev.GROFlushTimeout), dev.DeferHardIRQs
	cfg.RPS = steering(dev)
	var err error
	cfg.GRO, err = b.gro(dev)
	return cfg, err
}

// gro returns GRO of a device as the kernel's version has it, nil where it is off.
func (b *bench) gro(dev *recording.Device) (*gro.Config, error) {
	if !dev.Features[groFeature] {
		return nil, nil
	}
	g, err := gro.ForVersion(b.behaviours[spec.GROTable], b.behaviours[spec.UDPGRO])
	if err != nil {
		return nil, err
	}
	g.Sockets = b.stack
	return &g, g.SetSizes(b.behaviours[spec.GROMaxSize], 0, 0)
}

// steering returns the RPS of a device's first receive queue, nil where it is off.
func steering(dev *recording.Device) *rps.Queue {
	if len(dev.RPS) == 0 {
		return nil
	}
	return rps.NewQueue(rps.Config{CPUs: dev.RPS[0]})
}

// rps reports whether a device of the recording steers packets.
func (b *bench) rps() bool {
	return slices.ContainsFunc(b.rec.Devices, func(d recording.Device) bool { return steering(&d) != nil })
}

// flow is the one flow of the recordings.
const flow model.FlowID = 0

// buildReader makes the process that receives. Its buffer of 16 MB is doubled by the
// kernel; it never fills.
func (b *bench) buildReader() error {
	if streams(b.rec) {
		return b.buildStreams()
	}
	if b.rec.Receiver.Role == "" { // the address that is sent to is nobody's
		b.stack.Bind(flow, notHere{&b.env, b.prices.ipError})
		return nil
	}
	if b.rec.Receiver.Role != "udprecv" {
		return nil
	}
	sock := host.NewUDPSock(&b.env, host.UDPConfig{RcvBuf: 32_000_000})
	b.stack.Bind(flow, sock)
	b.machine.NewTask(b.machine.Cores[0], "nt", cpu.TaskConfig{Sleeper: true}, host.Datagrams(sock)).WakeFromDevice()
	return nil
}

// buildHog makes the process that does nothing but run, where the recording has one.
func (b *bench) buildHog() error {
	if strings.Contains(b.rec.Description, "CPU-bound user process") {
		b.machine.NewTask(b.machine.Cores[0], "nt", cpu.TaskConfig{}, host.Hog).WakeFromDevice()
	}
	return nil
}

// notHere stands where a socket would: packets for an address that the host does not have
// end in ip_error.
type notHere struct {
	env  *host.Env
	cost sim.Time
}

// Receive implements stack.Socket.
func (n notHere) Receive(c *cpu.Core, s *model.SKB) {
	c.Work(n.cost)
	n.env.Drop(c, s, model.DropIPAddress)
}

// udpPayload is what the harness sends: frames of 60 bytes without FCS.
const udpPayload = 18

func (b *bench) buildSender() error {
	role := b.rec.Sender.Role
	switch {
	case streams(b.rec): // made with the reader
	case len(b.runs) > 0:
		b.buildPktgen()
	case len(b.in.Slots) > 0 && b.veth != nil:
		b.buildNetem()
	case role == "udpsend" && b.tap == nil:
		b.buildUDPSender()
	case role == "tunwrite" && b.tap != nil:
		b.buildTapWriter()
	default:
		return fmt.Errorf("a sender of kind %q cannot be simulated yet", role)
	}
	return nil
}

// segment is the frame that all senders of datagrams send.
func segment() *model.Segment {
	return &model.Segment{Frame: model.Frame{Flow: flow, Hash: 1, Payload: udpPayload, Len: model.UDPFrameLen(udpPayload), Proto: model.UDP}}
}

// early is how long before it was switched to a thread of pktgen may have been woken to
// begin.
const early = 1_000_000

// buildPktgen makes the thread of pktgen. It looks for something to do whenever it is woken,
// and it is woken for other reasons, too.
func (b *bench) buildPktgen() {
	seg := segment()
	xmit := func(c *cpu.Core, n int) int { return b.na.Burst(c, seg, n) }
	pid := b.runs[0].pid
	woken := b.wokenBySoftirq(pid)
	var bodies []func(*cpu.Task)
	var starts []sim.Time
	for i, run := range b.runs {
		cfg := host.PktgenConfig{
			Count: run.count, Burst: run.burst, Delay: run.delay,
			Prepare: b.prices.prepare, Look: b.prices.look, NewSKB: b.na.NewSKB,
		}
		start := b.at(run.start)
		if i == 0 {
			cfg.Once = ns(max(b.shift, 0))
			if !woken {
				start, cfg.Once = b.at(run.start+b.shift), 0
			}
		}
		starts = append(starts, start)
		bodies = append(bodies, host.Pktgen(cfg, xmit))
	}
	task := b.machine.NewTask(b.machine.Cores[0], "kpktgend_0", cpu.TaskConfig{Sleeper: true}, func(t *cpu.Task) {
		c := t.Core()
		for i, body := range bodies {
			if !woken {
				t.SleepUntil(starts[i])
			}
			for c.Look(); woken && c.Now() < starts[i]-ns(early); c.Look() {
				t.Sleep()
			}
			body(t)
		}
	})
	if !woken {
		task.WakeFromDevice()
	}
	b.pktgen[pid] = task
}

// wokenBySoftirq reports whether a replayed handler wakes a task.
func (b *bench) wokenBySoftirq(pid int) bool {
	return slices.ContainsFunc(b.in.Softirqs, func(s input.Softirq) bool {
		return s.At >= b.start && slices.Contains(s.Woke, pid)
	})
}

// traced returns the names of all events that the recorded machine traced, also of those
// that were left out when the recording was trimmed.
func traced(r *recording.Recording) map[string]bool {
	names := map[string]bool{}
	for name := range r.EventNames {
		names[name] = true
	}
	for i := range r.Events {
		if e := &r.Events[i]; e.Name == "napisim_dropped" {
			for word := range strings.FieldsSeq(e.Payload) {
				name, _, _ := strings.Cut(word, "=")
				names[name] = true
			}
		}
	}
	return names
}
