package scenarios

import (
	"errors"
	"fmt"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/model/skbuff"
	"napisim/model/tcp"
	"napisim/model/traffic"
	"napisim/nic/driver"
	"napisim/sim"
	"napisim/sim/metric"
	"napisim/softirq"
)

// counter names of the Set: what the metrics of a result are computed from.
const (
	rawBytesRead    = "bytes_read"
	rawFrames       = "rx_frames" // the work of all polls
	rawWritten      = "frames_written"
	rawBytes        = "rx_bytes"
	rawMissed       = "rx_missed_errors"
	rawInterrupts   = "interrupts"
	rawRXInterrupts = "rx_interrupts"
	rawNetRX        = "softirqs"
	rawRestarts     = "softirq_restarts"
	rawPolls        = "polls"
	rawSqueeze      = "time_squeeze"
	rawBacklogPolls = "backlog_polls"
	rawRPS          = "received_rps"
	rawBusyPolls    = "busy_polls"
	rawBusyFrames   = "busy_poll_frames"
	rawTransactions = "transactions"
	rawRetries      = "request_retries"
	rawWakeups      = "ksoftirqd_wakeups"
	rawSwitches     = "context_switches"
	rawPackets      = "stack_packets"
	rawSegments     = "stack_segments"
	rawAcks         = "acks_sent"
	rawRetransmits  = "retransmits"
	rawSKB          = "skb_" // the start of names
	rawTCP          = "tcp_"
)

// register lists every counter and histogram of the run in its Set, which cuts the
// warm-up off.
func (sys *System) register() {
	sys.registerDevices()
	sys.registerKernel()
	sys.registerSockets()
	for r := range model.NumDropReasons {
		sys.sum("lost_"+r.String(), func() int64 { return sys.losses()[r] })
	}
	sys.accBase = make([][cpu.NumContexts]sim.Time, len(sys.machine.Cores))
	sys.workBase = make([]sim.Time, len(sys.machine.Cores))
	sys.spentBase = make([][model.NumStages]int64, len(sys.machine.Cores))
}

func (sys *System) sum(name string, read func() int64) {
	sys.set.Func(metric.Desc{Name: name, Unit: "1"}, read)
}

func (sys *System) registerDevices() {
	device := func(name string, read func(*driver.Netdev) int64) {
		sys.sum(name, func() (total int64) {
			for _, p := range sys.ports {
				total += read(p.dev)
			}
			return total
		})
	}
	device(rawBytes, func(d *driver.Netdev) int64 { return d.Device().Stats(sys.eng.Now()).RXBytes })
	sys.sum(rawWritten, sys.written)
	device(rawMissed, func(d *driver.Netdev) int64 { return d.Device().Stats(sys.eng.Now()).RXMissedErrors })
	device(rawInterrupts, func(d *driver.Netdev) (total int64) {
		for _, l := range d.Lines() {
			total += l.Count
		}
		return total
	})
	// The first line of an interface is that of its receive vector.
	device(rawRXInterrupts, func(d *driver.Netdev) int64 { return d.Lines()[0].Count })
	pool := func(name string, read func(*driver.PagePoolStats) *metric.Counter) {
		device("page_pool_"+name, func(d *driver.Netdev) int64 { return read(d.Pool().Stats()).Value() })
	}
	pool("alloc_fast", func(s *driver.PagePoolStats) *metric.Counter { return &s.AllocFast })
	pool("alloc_slow", func(s *driver.PagePoolStats) *metric.Counter { return &s.AllocSlow })
	pool("alloc_slow_high_order", func(s *driver.PagePoolStats) *metric.Counter { return &s.AllocSlowHO })
	pool("alloc_empty", func(s *driver.PagePoolStats) *metric.Counter { return &s.AllocEmpty })
	pool("alloc_refill", func(s *driver.PagePoolStats) *metric.Counter { return &s.AllocRefill })
	pool("recycle_cached", func(s *driver.PagePoolStats) *metric.Counter { return &s.RecycleCached })
	pool("recycle_cache_full", func(s *driver.PagePoolStats) *metric.Counter { return &s.RecycleCacheFull })
	pool("recycle_ring", func(s *driver.PagePoolStats) *metric.Counter { return &s.RecycleRing })
	pool("recycle_ring_full", func(s *driver.PagePoolStats) *metric.Counter { return &s.RingFull })
}

func (sys *System) registerKernel() {
	kernel := func(name string, read func(*softirq.Stats) int64) {
		sys.sum(name, func() (total int64) {
			for _, sd := range sys.softnets {
				total += read(sd.Stats())
			}
			return total
		})
	}
	kernel(rawNetRX, func(s *softirq.Stats) int64 { return s.Softirqs[softirq.NetRX] })
	kernel(rawRestarts, func(s *softirq.Stats) int64 { return s.Restarts })
	kernel(rawPolls, func(s *softirq.Stats) int64 { return s.Polls })
	kernel(rawBusyPolls, func(s *softirq.Stats) int64 { return s.BusyPolls })
	kernel(rawBusyFrames, func(s *softirq.Stats) int64 { return s.BusyPollRxPackets })
	kernel(rawSqueeze, func(s *softirq.Stats) int64 { return s.TimeSqueeze })
	kernel(rawBacklogPolls, func(s *softirq.Stats) int64 { return s.BacklogWork.Count() })
	kernel(rawRPS, func(s *softirq.Stats) int64 { return s.ReceivedRPS })
	kernel(rawWakeups, func(s *softirq.Stats) int64 { return s.KsoftirqdWakeups })
	heads := func(name string, read func(skbuff.Stats) int64) {
		sys.sum(rawSKB+name, func() (total int64) {
			for _, c := range sys.machine.Cores {
				total += read(sys.env.Heads.On(c).Stats())
			}
			return total
		})
	}
	heads("slab_allocs", func(s skbuff.Stats) int64 { return s.SlabAllocs })
	heads("slab_frees", func(s skbuff.Stats) int64 { return s.SlabFrees })
	heads("bulk_allocs", func(s skbuff.Stats) int64 { return s.BulkAllocs })
	heads("bulk_frees", func(s skbuff.Stats) int64 { return s.BulkFrees })
	heads("deferred", func(s skbuff.Stats) int64 { return s.Deferred })
	heads("defer_kicks", func(s skbuff.Stats) int64 { return s.Kicks })
	sys.sum(rawPackets, func() int64 { return sys.stack.Stats().Packets })
	sys.sum(rawSegments, func() int64 { return sys.stack.Stats().Segments })
	sys.sum(rawSwitches, func() (total int64) {
		for _, c := range sys.machine.Cores {
			total += c.Stats().ContextSwitches
		}
		return total
	})
	for i, sd := range sys.softnets {
		sys.histogram(fmt.Sprintf("work_per_poll/%d", i), "frames", &sd.Stats().Work)
		sys.histogram(fmt.Sprintf("gro_segments/%d", i), "frames", &sd.Stats().GROSegments)
	}
}

func (sys *System) histogram(name, unit string, h *metric.Histogram) {
	sys.set.Histogram(metric.Desc{Name: name, Unit: unit}, h)
}

func (sys *System) registerSockets() {
	sys.sum(rawBytesRead, func() (total int64) {
		for _, r := range sys.receptions() {
			total += r.Bytes
		}
		return total
	})
	sys.sum(rawAcks, func() (total int64) {
		for _, s := range sys.tcp {
			total += s.Receiver().Stats().AcksSent
		}
		return total
	})
	if len(sys.tcp) > 0 {
		sys.registerTCP()
	}
	sys.sum(rawRetransmits, func() (total int64) {
		for _, s := range sys.senders {
			total += s.Stats().Retrans
		}
		return total
	})
	client := func(name string, read func(*traffic.RequesterStats) int64) {
		sys.sum(name, func() (total int64) {
			for _, c := range sys.clients {
				total += read(c.Stats())
			}
			return total
		})
	}
	client(rawTransactions, func(s *traffic.RequesterStats) int64 { return s.Answers })
	client(rawRetries, func(s *traffic.RequesterStats) int64 { return s.Retries })
	for i, c := range sys.clients {
		sys.histogram(fmt.Sprintf("rtt/%d", i), "ps", &c.Stats().RTT)
	}
	for i, r := range sys.receptions() {
		sys.histogram(fmt.Sprintf("latency/%d", i), "ps", &r.Latency)
	}
}

// registerTCP lists what the kernel counts in /proc/net/netstat.
func (sys *System) registerTCP() {
	netstat := func(name string, read func(*tcp.ReceiverStats) int64) {
		sys.sum(rawTCP+name, func() (total int64) {
			for _, s := range sys.tcp {
				st := s.Receiver().Stats()
				total += read(&st)
			}
			return total
		})
	}
	netstat("delayed_acks", func(s *tcp.ReceiverStats) int64 { return s.DelayedACKs })
	netstat("compressed_acks", func(s *tcp.ReceiverStats) int64 { return s.CompressedACKs })
	netstat("ofo_queue", func(s *tcp.ReceiverStats) int64 { return s.TCPOFOQueue })
	netstat("rcv_coalesce", func(s *tcp.ReceiverStats) int64 { return s.TCPRcvCoalesce })
	netstat("backlog_coalesce", func(s *tcp.ReceiverStats) int64 { return s.TCPBacklogCoalesce })
	netstat("prune_called", func(s *tcp.ReceiverStats) int64 { return s.PruneCalled })
	netstat("rcv_collapsed", func(s *tcp.ReceiverStats) int64 { return s.TCPRcvCollapsed })
	netstat("ofo_pruned", func(s *tcp.ReceiverStats) int64 { return s.OfoPruned })
}

// receptions returns what each socket has delivered, UDP sockets first.
func (sys *System) receptions() []*host.Reception {
	var all []*host.Reception
	for _, s := range sys.udp {
		all = append(all, s.Received())
	}
	for _, s := range sys.tcp {
		all = append(all, s.Received())
	}
	return all
}

// losses adds up what was lost by reason: by devices, drivers and the stack, and in
// the state machines of TCP.
func (sys *System) losses() model.Losses {
	all := *sys.env.Losses
	for _, p := range sys.ports {
		all.Add(model.DropRxMissed, int(p.dev.Device().Stats(sys.eng.Now()).RXMissedErrors))
	}
	for _, s := range sys.tcp {
		for r, n := range s.Receiver().Stats().Lost {
			all[r] += n
		}
	}
	return all
}

// cut ends the warm-up: what follows is measured.
func (sys *System) cut() {
	sys.measured = sys.eng.Now()
	sys.settle()
	sys.set.Cut(sys.measured)
	for i, c := range sys.machine.Cores {
		sys.accBase[i], sys.workBase[i], sys.spentBase[i] = c.Account(), c.Worked(), c.Spent()
	}
}

func (sys *System) settle() {
	for _, c := range sys.machine.Cores {
		c.Settle()
	}
}

// Check holds the ledgers of the run against each other: frames, segments and skbs,
// bytes, pages, and the time of every core. What is broken is a bug of the model.
func (sys *System) Check() error {
	var faults []error
	held := map[model.PageReturner]int{}
	var live int64
	sys.env.SKBs.Each(func(s *model.SKB) {
		live += int64(s.Segs)
		if s.Pool != nil {
			held[s.Pool] += s.Pages
		}
	})
	taken := sys.written()
	for _, p := range sys.ports {
		faults = append(faults, p.dev.Check(held[p.dev.Pool()]))
		taken += p.dev.Device().RX(0).Taken() - p.dev.Stats().XDPDropped
	}
	if freed := sys.env.SKBs.Freed(); taken != live+freed {
		faults = append(faults, fmt.Errorf("%d frames were polled, but %d are in skbs and %d were freed with theirs", taken, live, freed))
	}
	for i, s := range sys.tcp {
		if err := s.Receiver().Check(); err != nil {
			faults = append(faults, fmt.Errorf("tcp socket %d: %w", i, err))
		}
	}
	for i, s := range sys.udp {
		st, r := s.Stats(), s.Received()
		if open := st.InDatagrams - r.Reads - int64(s.Queued()); open < 0 || open > 1 {
			faults = append(faults, fmt.Errorf("udp socket %d: %d datagrams queued, %d read, %d waiting", i, st.InDatagrams, r.Reads, s.Queued()))
		}
	}
	faults = append(faults, sys.env.Heads.Check())
	for _, c := range sys.machine.Cores {
		faults = append(faults, c.Check())
	}
	return errors.Join(faults...)
}
