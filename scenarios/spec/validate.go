package spec

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"napisim/model/unit"
	"napisim/scenarios/faults"
	"napisim/scenarios/strict"
)

// Bytes around and within a frame. With timestamps, which Linux uses, a TCP header has
// 12 bytes of options.
const (
	ethernetHeader = 14
	ethernetFCS    = 4
	ipv4Header     = 20
	ipv6Header     = 40
	udpHeader      = 8
	tcpHeader      = 20
	tcpTimestamps  = 12
)

// maxInterfaceName is IFNAMSIZ without the final zero.
const maxInterfaceName = 15

// Validate returns everything that is wrong with a complete scenario: what the fields
// forbid one by one and what they say about each other. The faults know paths, no
// positions. Stages are the cost stages of the model; without them their names are not
// checked.
func (s *Scenario) Validate(stages []string) faults.List {
	return strict.Check(*s).And(s.relations(stages))
}

// Validate returns everything that is wrong with a platform.
func (p *Platform) Validate(stages []string) faults.List {
	return strict.Check(*p).And(p.checkStages(stages))
}

// A checker collects what is wrong between the fields of a scenario.
type checker struct {
	*Scenario
	found faults.List
}

func (c *checker) fault(path, format string, args ...any) *faults.Fault {
	c.found = append(c.found, faults.Fault{Path: path, Text: fmt.Sprintf(format, args...)})
	return &c.found[len(c.found)-1]
}

// relations returns what the fields of the scenario say about each other that cannot be.
func (s *Scenario) relations(stages []string) faults.List {
	c := checker{Scenario: s}
	c.time()
	if len(s.NICs)+len(s.Taps)+len(s.Veths) == 0 {
		c.fault("nics", "is missing: a scenario needs an interface, here or under taps or veths")
	}
	c.found = append(c.found, checkBehaviours(s.Kernel.Behaviours, "kernel.behaviours", "kernel.preset")...)
	for _, f := range s.Platform.checkStages(stages) {
		f.Path = "platform." + f.Path
		c.found = append(c.found, f)
	}
	c.sysctl()
	if c.Kernel.ThreadBacklogNAPI && c.Kernel.Behaviours[BacklogThreads] != Threads {
		c.fault("kernel.thread_backlog_napi", "this kernel has no backlog threads: see kernel.behaviours.%s", BacklogThreads)
	}
	for _, name := range sorted(s.NICs) {
		c.nic("nics."+name, name, s.NICs[name])
	}
	for _, name := range sorted(s.Taps) {
		c.tap("taps."+name, name, s.Taps[name])
	}
	for _, name := range sorted(s.Veths) {
		c.virtual("veths."+name, name, s.Veths[name].Queues)
		c.cpu("veths."+name+".cpu", s.Veths[name].CPU)
	}
	c.writers()
	for _, name := range sorted(s.Apps) {
		c.app("apps."+name, s.Apps[name])
		c.busyPoll("apps."+name, s.Apps[name])
	}
	for _, name := range sorted(s.Traffic) {
		c.traffic("traffic."+name, s.Traffic[name])
	}
	for i, e := range s.Evidence {
		c.evidence(fmt.Sprintf("evidence.%d.variant", i), e)
	}
	return c.found
}

func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// fileName is what a scenario may be called: its name becomes part of file names.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func (c *checker) time() {
	if !fileName.MatchString(c.Name) {
		c.fault("name", "%q cannot be part of a file name: use letters, digits, '.', '-' and '_'", c.Name)
	}
	if c.Warmup >= c.Duration && c.Duration > 0 {
		c.fault("warmup", "%v leaves nothing of the duration of %v", c.Warmup, c.Duration)
	}
}

// cpu checks the number of a CPU.
func (c *checker) cpu(path string, cpu int) {
	if c.CPUs > 0 && cpu >= c.CPUs {
		c.fault(path, "there is no CPU %d: cpus is %d, counted from 0", cpu, c.CPUs)
	}
}

func (c *checker) sysctl() {
	if usecs := c.Sysctl.NetdevBudgetUsecs; usecs > 0 && c.HZ > 0 {
		switch c.Kernel.Behaviours[NetdevBudgetUsecs] {
		case NotSettable:
			if usecs != twoTicks(c.HZ) {
				c.fault("sysctl.net.core.netdev_budget_usecs", "the kernel has no such setting: its limit is two ticks, %v at hz %d", twoTicks(c.HZ), c.HZ)
			}
		case AtLeastTwoJiffies:
			if usecs < twoTicks(c.HZ) {
				c.fault("sysctl.net.core.netdev_budget_usecs", "%v is refused by the kernel: two ticks at hz %d are %v", usecs, c.HZ, twoTicks(c.HZ))
			}
		}
	}
	if rmem := c.Sysctl.TCPRmem; !slices.IsSorted(rmem[:]) {
		c.fault("sysctl.net.ipv4.tcp_rmem", "%v, %v and %v do not ascend: they are the smallest, the initial and the largest buffer",
			rmem[0], rmem[1], rmem[2])
	}
}

// twoTicks is the default of net.core.netdev_budget_usecs, which counts whole
// microseconds.
func twoTicks(hz HZ) unit.Duration {
	return unit.Duration(2_000_000/int64(hz)) * unit.Microsecond
}

func (c *checker) nic(path, name string, nic NIC) {
	c.interfaceName(path, name)
	c.steering(path+".queues.rx-0.rps_cpus", nic.Queues.RX0)
	if nic.NAPI.ThreadCPU != nic.IRQ.RX {
		c.cpu(path+".napi.thread_cpu", nic.NAPI.ThreadCPU)
	}
	c.napi(path+".napi", nic.NAPI)
	c.cpu(path+".irq.rx", nic.IRQ.RX)
	if nic.Driver == DriverLAN966x && nic.IRQ.TX != nic.IRQ.RX {
		c.fault(path+".irq.tx", "the driver %s has one vector: leave it out, or give it the CPU %d of irq.rx",
			nic.Driver, nic.IRQ.RX)
		return
	}
	// What is derived from irq.rx is not at fault once more.
	if nic.IRQ.TX != nic.IRQ.RX {
		c.cpu(path+".irq.tx", nic.IRQ.TX)
	}
}

// napi checks that the kernel has the settings that a card's NAPI instances use.
func (c *checker) napi(path string, n NAPI) {
	k := c.Kernel.Behaviours
	if v := k[NAPIComplete]; n.DeferHardIRQs > 0 && v != DeferHardIRQs && v != "" {
		c.fault(path+".napi_defer_hard_irqs", "the kernel has no such setting: kernel.behaviours.%s is %s, not %s", NAPIComplete, v, DeferHardIRQs)
	}
	if v := k[BusyPoll]; n.IRQSuspendTimeout > 0 && v != IRQSuspend && v != "" {
		c.fault(path+".irq_suspend_timeout", "the kernel has no such setting: kernel.behaviours.%s is %s, not %s", BusyPoll, v, IRQSuspend)
	}
	v := k[NAPIThreaded]
	switch {
	case n.Threaded != ThreadedDisabled && v == NoThreads:
		c.fault(path+".threaded", "the kernel has no such setting: kernel.behaviours.%s is %s", NAPIThreaded, v)
	case n.Threaded == ThreadedBusyPoll && v != BusyPollingNAPIs && v != "":
		c.fault(path+".threaded", "the threads of the kernel cannot: kernel.behaviours.%s is %s, not %s", NAPIThreaded, v, BusyPollingNAPIs)
	}
}

func (c *checker) interfaceName(path, name string) {
	if len(name) > maxInterfaceName {
		c.fault(path, "the name has %d letters, Linux allows %d", len(name), maxInterfaceName)
	}
}

// virtual checks an interface without hardware: its name must not be taken.
func (c *checker) virtual(path, name string, q Queues) {
	c.interfaceName(path, name)
	if _, taken := c.NICs[name]; taken {
		c.fault(path, "there is a nic of this name")
	}
	c.steering(path+".queues.rx-0.rps_cpus", q.RX0)
}

func (c *checker) tap(path, name string, t Tap) {
	c.virtual(path, name, t.Queues)
	if _, taken := c.Veths[name]; taken {
		c.fault(path, "there is a veth pair of this name")
	}
	write := c.Kernel.Behaviours[TunWrite]
	if (t.NAPI || t.RXFrames > 0) && write != TunRxBatched && write != TunFragsOwned {
		c.fault(path, "napi and rx-frames need kernel.behaviours.%s: %s or %s", TunWrite, TunRxBatched, TunFragsOwned)
	}
	if t.NAPIFrags && (!t.NAPI || write != TunFragsOwned) {
		c.fault(path+".napi_frags", "needs napi: on and kernel.behaviours.%s: %s", TunWrite, TunFragsOwned)
	}
}

// writers checks that each tap device has one writer, as its queue has one file.
func (c *checker) writers() {
	writer := map[string]string{}
	for _, name := range sorted(c.Apps) {
		a := c.Apps[name]
		if a.Kind != AppTunWriter && a.Kind != AppVhost {
			continue
		}
		if first, taken := writer[a.Device]; taken {
			c.fault("apps."+name+".device", "the tap device %q is written to by %s already", a.Device, first)
			continue
		}
		writer[a.Device] = name
	}
}

func (c *checker) app(path string, a App) {
	c.cpu(path+".cpu", a.CPU)
	if !a.Kind.sends() {
		return
	}
	devices, noun := sorted(c.Taps), "tap device"
	if a.Kind == AppUDPSender {
		devices, noun = sorted(c.Veths), "veth pair"
	}
	if a.Device != "" && !slices.Contains(devices, a.Device) {
		f := c.fault(path+".device", "there is no %s %q", noun, a.Device)
		f.Suggestion = faults.Nearest(a.Device, devices)
	}
	if a.To == "" {
		return
	}
	if to, ok := c.Apps[a.To]; !ok || to.Kind != AppUDPReader {
		f := c.fault(path+".to", "there is no %s %q", AppUDPReader, a.To)
		f.Suggestion = faults.Nearest(a.To, sorted(c.Apps))
	}
}

// steering checks the CPUs of a mask.
func (c *checker) steering(path string, q RXQueue) {
	if c.CPUs > 0 && c.CPUs < 64 && q.RPSCPUs>>c.CPUs != 0 {
		c.fault(path, "%v names CPUs from %d on: cpus is %d, counted from 0", q.RPSCPUs, c.CPUs, c.CPUs)
	}
}

// busyPoll checks that the kernel has the busy-polling settings that an app uses.
func (c *checker) busyPoll(path string, app App) {
	v := c.Kernel.Behaviours[BusyPoll]
	since := PreferBusyPoll // the first version that has them
	if app.Wait == WaitEpoll {
		since = EpollParams
	}
	order := []string{EachPoll, OwnedByLoop, PreferBusyPoll, EpollParams, IRQSuspend}
	if v == "" || slices.Index(order, v) >= slices.Index(order, since) || !slices.Contains(order, v) {
		return
	}
	lacks := func(field string) {
		c.fault(path+"."+field, "the kernel has no such setting: kernel.behaviours.%s is %s, not %s or later", BusyPoll, v, since)
	}
	if app.PreferBusyPoll {
		lacks("prefer_busy_poll")
	}
	if app.BusyPollBudget > 0 {
		lacks("busy_poll_budget")
	}
	if app.Wait == WaitEpoll && app.BusyPoll != c.Sysctl.BusyPoll {
		lacks("busy_poll")
	}
}

func (c *checker) traffic(path string, t Traffic) {
	nic, ok := c.NICs[t.NIC]
	_, veth := c.Veths[t.NIC]
	if !ok && (!veth || t.Kind != TrafficUDP) {
		f := c.fault(path+".nic", "there is no nic %q", t.NIC)
		f.Suggestion = faults.Nearest(t.NIC, sorted(c.NICs))
	}
	c.reader(path+".to", t)
	if t.Start >= c.Duration && c.Duration > 0 {
		c.fault(path+".start", "%v is not before the end: the duration is %v", t.Start, c.Duration)
	}
	if nic.MTU == 0 {
		return // no such card, or one whose MTU could not be read
	}
	switch t.Kind {
	case TrafficTCP:
		if most := unit.Bytes(nic.MTU - t.ipHeader() - tcpHeader); t.MSS > most {
			c.fault(path+".mss", "%v is more than %v, what the MTU %d of %s leaves beside IP and TCP", t.MSS, most, nic.MTU, t.NIC)
		}
		if t.TSO < t.MSS {
			c.fault(path+".tso", "%v is less than one segment: the mss is %v", t.TSO, t.MSS)
		}
	case TrafficUDP, TrafficRR:
		c.frame(path+".size", t, t.Size, nic)
		if t.Kind == TrafficRR {
			c.frame(path+".reply", t, t.Reply, nic)
		}
	}
}

// frame checks the size of a UDP frame.
func (c *checker) frame(path string, t Traffic, size unit.Bytes, nic NIC) {
	if least := unit.Bytes(ethernetHeader + ipv6Header + udpHeader + ethernetFCS); t.IPv6 && size < least {
		c.fault(path, "%v is less than %v, the smallest frame of UDP over IPv6", size, least)
	}
	if most := unit.Bytes(ethernetHeader + nic.MTU + ethernetFCS); size > most {
		c.fault(path, "%v is more than %v, the largest frame with the MTU %d of %s", size, most, nic.MTU, t.NIC)
	}
}

// reader checks that traffic goes to an app that can read it.
func (c *checker) reader(path string, t Traffic) {
	app, ok := c.Apps[t.To]
	switch {
	case t.To == "" && t.Kind == TrafficTCP:
		c.fault(path, "is missing: a TCP connection needs an app that accepts it")
	case t.To == "" && t.Kind == TrafficRR:
		c.fault(path, "is missing: requests need an app that answers them")
	case t.To == "" || t.Kind == "":
	case !ok:
		f := c.fault(path, "there is no app %q", t.To)
		f.Suggestion = faults.Nearest(t.To, sorted(c.Apps))
	case app.Kind != "" && app.Kind != t.Kind.reader():
		c.fault(path, "the app %q is a %s; %s traffic needs a %s", t.To, app.Kind, t.Kind, t.Kind.reader())
	}
}

// evidence checks that the assignments of a variant name fields that exist.
func (c *checker) evidence(path string, e Evidence) {
	for _, assignment := range e.Assignments() {
		_, found := strict.Set[Scenario](strict.Tree(*c.Scenario), 0, assignment)
		for _, f := range found {
			c.found = append(c.found, faults.Fault{Path: path, Text: join(f.Path, f.Text), Suggestion: f.Suggestion})
		}
	}
}

func join(path, text string) string {
	if path == "" {
		return text
	}
	return path + ": " + text
}
