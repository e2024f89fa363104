package guest

import "testing"

// TestITRClasses has the borders of e1000_update_itr.
func TestITRClasses(t *testing.T) {
	for _, test := range []struct {
		old            latency
		packets, bytes int
		want           latency
	}{
		{lowLatency, 0, 0, lowLatency},
		{lowestLatency, 1, 60, lowestLatency},    // a request
		{lowestLatency, 4, 4 * 1514, lowLatency}, // few packets, many bytes
		{lowestLatency, 5, 5 * 1514, lowestLatency},
		{lowestLatency, 1, 8001, bulkLatency}, // TSO
		{lowLatency, 1, 60, lowestLatency},
		{lowLatency, 2, 511, lowestLatency},
		{lowLatency, 2, 512, lowLatency},
		{lowLatency, 3, 180, lowLatency},
		{lowLatency, 1, 2001, bulkLatency},
		{lowLatency, 65, 65 * 60, lowLatency},      // a burst of 65
		{lowLatency, 300, 300 * 60, lowestLatency}, // one of 300 is above 10000 bytes
		{lowLatency, 7, 7 * 1514, bulkLatency},     // 10598 bytes in fewer than 10
		{lowLatency, 36, 36 * 1201, bulkLatency},
		{lowLatency, 36, 36 * 1200, lowestLatency},
		{lowLatency, 35, 35 * 1200, lowLatency},
		{bulkLatency, 45, 45 * 1514, lowLatency},
		{bulkLatency, 17, 17 * 1514, bulkLatency}, // 25738 bytes in 17
		{bulkLatency, 3, 3 * 1514, lowLatency},    // below 6000
		{bulkLatency, 4, 4 * 1514, bulkLatency},
	} {
		i := itr{}
		if got := i.update(test.old, test.packets, test.bytes); got != test.want {
			t.Errorf("%d packets, %d bytes from class %d: class %d, not %d", test.packets, test.bytes, test.old, got, test.want)
		}
	}
}

// TestITRSteps: the rate falls at once and rises by a quarter of the new one: 4000,
// then 4000 + 20000/4, then 14000, 19000, 20000. In units of 256 ns 4000 are 976.
func TestITRSteps(t *testing.T) {
	i := newITR(Config{})
	if i.interval() != 195 {
		t.Errorf("20000 a second are %d units", i.interval())
	}
	see := func(packets, bytes, rate int) {
		t.Helper()
		was := i.rate
		i.rxPackets, i.rxBytes = packets, bytes
		if changed := i.set(); i.rate != rate || changed != (rate != was) {
			t.Errorf("%d bytes in %d packets: %d a second, changed %v; not %d", bytes, packets, i.rate, changed, rate)
		}
	}
	see(1, 60, 20000) // the conservative mode has no 70000
	see(7, 7*1514, 4000)
	if i.interval() != 976 {
		t.Errorf("4000 a second are %d units", i.interval())
	}
	for _, rate := range []int{9000, 14000, 19000, 20000, 20000} {
		see(1, 60, rate)
	}
}

// TestITRFixed: rx-usecs 0 leaves no moderation but that of the device.
func TestITRFixed(t *testing.T) {
	i := newITR(Config{FixedITR: true})
	i.rxPackets, i.rxBytes = 7, 7*1514
	if i.set() || i.interval() != 0 {
		t.Errorf("%d units", i.interval())
	}
}

// TestITRTransmitted: the higher class of the two directions decides. From the lowest
// class, where both start, it takes two polls.
func TestITRTransmitted(t *testing.T) {
	i := newITR(Config{})
	i.rxPackets, i.rxBytes, i.txPackets, i.txBytes = 2, 132, 45, 45*1514
	if i.set() {
		t.Errorf("%d a second at once", i.rate)
	}
	if i.set(); i.rate != 4000 {
		t.Errorf("%d a second", i.rate)
	}
}
