package guest

// bql is a byte queue limit: struct dql of lib/dynamic_queue_limits.c with the stop
// flag of its queue. Numbers of bytes are counts since the start and do not wrap.
type bql struct {
	on           bool
	min          int64
	limit        int64
	adjLimit     int64 // limit + completed: what may be queued
	queued       int64
	completed    int64
	lastObj      int64 // bytes of the last call of queue
	prevOver     int64
	prevQueued   int64
	prevLastObj  int64
	slackStart   int64 // jiffy
	lowestSlack  int64
	xoff         bool // __QUEUE_STATE_STACK_XOFF
	slackHolding int64
}

const noSlack = 1<<32 - 1

// newBQL returns a limit that is zero until the first completion.
func newBQL(cfg Config, hz int) bql {
	return bql{on: cfg.BQL, min: int64(cfg.BQLMin), lowestSlack: noSlack, slackHolding: int64(hz)}
}

// count is dql_queued.
func (q *bql) count(bytes int) {
	q.lastObj = int64(bytes)
	q.queued += int64(bytes)
}

// avail is dql_avail: how many bytes may still be queued, negative if too many are.
func (q *bql) avail() int64 { return q.adjLimit - q.queued }

// sent is netdev_tx_sent_queue: it counts and stops a queue that is over its limit.
func (q *bql) sent(bytes int) {
	if !q.on {
		return
	}
	q.count(bytes)
	if q.avail() < 0 {
		q.xoff = true
	}
}

// done is netdev_tx_completed_queue. It reports whether it starts the queue again.
func (q *bql) done(bytes int, jiffies int64) (started bool) {
	if !q.on || bytes == 0 {
		return false
	}
	q.complete(int64(bytes), jiffies)
	if q.avail() < 0 || !q.xoff {
		return false
	}
	q.xoff = false
	return true
}

// complete is dql_completed. The limit grows when the queue ran dry although more was
// held back, and shrinks by the least slack seen in a second.
func (q *bql) complete(count, jiffies int64) {
	completed := q.completed + count
	limit := q.limit
	over := max(q.queued-q.completed-limit, 0)
	inProgress := q.queued != completed
	prevInProgress := q.prevQueued != q.completed
	allPrevDone := completed >= q.prevQueued
	switch {
	case over > 0 && !inProgress || q.prevOver > 0 && allPrevDone:
		limit += max(completed-q.prevQueued, 0) + q.prevOver
		q.slackStart, q.lowestSlack = jiffies, noSlack
	case inProgress && prevInProgress && !allPrevDone:
		slack := max(limit+q.prevOver-2*(completed-q.completed), 0)
		if q.prevOver > 0 {
			slack = max(slack, q.prevLastObj-q.prevOver)
		}
		q.lowestSlack = min(q.lowestSlack, slack)
		if jiffies > q.slackStart+q.slackHolding {
			limit = max(limit-q.lowestSlack, 0)
			q.slackStart, q.lowestSlack = jiffies, noSlack
		}
	}
	limit = min(max(limit, q.min), BQLMax)
	if limit != q.limit {
		q.limit, over = limit, 0
	}
	q.adjLimit = limit + completed
	q.prevOver, q.prevLastObj = over, q.lastObj
	q.completed, q.prevQueued = completed, q.queued
}
