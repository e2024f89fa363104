package guest

// latency is enum latency_range of e1000 and e1000e.
type latency uint8

const (
	lowestLatency latency = iota
	lowLatency
	bulkLatency
)

// The interrupt rates of each class, per second.
var rates = [...]int{lowestLatency: 70000, lowLatency: 20000, bulkLatency: 4000}

// itr is the dynamic interrupt moderation of both drivers in its default mode (3,
// conservative): interrupts per second by what was seen between two of them.
type itr struct {
	fixed              bool
	rate               int // adapter->itr
	rx, tx             latency
	rxBytes, rxPackets int
	txBytes, txPackets int
}

func newITR(cfg Config) itr {
	i := itr{fixed: cfg.FixedITR, rate: rates[lowLatency]}
	if i.fixed {
		i.rate = 0
	}
	return i
}

// update is e1000_update_itr: the class that follows old.
func (i *itr) update(old latency, packets, bytes int) latency {
	if packets == 0 {
		return old
	}
	each := bytes / packets
	switch old {
	case lowestLatency:
		if each > 8000 {
			return bulkLatency
		}
		if packets < 5 && bytes > 512 {
			return lowLatency
		}
	case lowLatency:
		return updateLow(packets, bytes, each)
	case bulkLatency:
		if bytes > 25000 && packets > 35 || bytes < 6000 {
			return lowLatency
		}
	}
	return old
}

// updateLow is the case of low_latency: 50 usecs or so.
func updateLow(packets, bytes, each int) latency {
	switch {
	case bytes > 10000 && (each > 8000 || packets < 10 || each > 1200):
		return bulkLatency
	case bytes > 10000 && packets > 35:
		return lowestLatency
	case bytes > 10000:
		return lowLatency
	case each > 2000:
		return bulkLatency
	case packets <= 2 && bytes < 512:
		return lowestLatency
	}
	return lowLatency
}

// set is e1000_set_itr at 1 Gbit/s: it adapts the rate and reports whether it changed.
// The conservative mode has no lowest latency, and the rate rises in steps.
func (i *itr) set() (changed bool) {
	if i.fixed {
		return false
	}
	i.tx = max(i.update(i.tx, i.txPackets, i.txBytes), lowLatency)
	i.rx = max(i.update(i.rx, i.rxPackets, i.rxBytes), lowLatency)
	rate := rates[max(i.rx, i.tx)]
	if rate == i.rate {
		return false
	}
	if rate > i.rate {
		rate = min(i.rate+rate>>2, rate)
	}
	i.rate = rate
	return true
}

// interval returns the rate as the registers want it, in units of 256 ns.
func (i *itr) interval() int {
	if i.rate == 0 {
		return 0
	}
	return 1_000_000_000 / (i.rate * 256)
}
