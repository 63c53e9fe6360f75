package testdb

// step is one statement of churn and what it changes in the state.
type step struct {
	query  string
	args   []any
	change digest
}

// plan chooses the next statement of churn and takes it as done.
func (w *Writer) plan() step {
	dice := w.rnd.IntN(10)
	switch n := len(w.ids); {
	case n == 0 || (dice < 5 && n < maxChurn):
		return w.insert()
	case dice < 8 && n < maxChurn:
		return w.update()
	default:
		return w.remove()
	}
}

func (w *Writer) insert() step {
	id := int64(1)
	if n := len(w.ids); n > 0 {
		id = w.ids[n-1] + 1
	}
	body := w.random(w.rnd.IntN(w.load.Body + 1))
	w.ids = append(w.ids, id)
	w.churn[id] = churnDigest(id, body)
	return step{"INSERT INTO churn (id, body) VALUES (?, ?)", []any{id, body}, w.churn[id]}
}

func (w *Writer) update() step {
	id := w.ids[w.rnd.IntN(len(w.ids))]
	body := w.random(w.rnd.IntN(w.load.Body + 1))
	change := w.churn[id]
	w.churn[id] = churnDigest(id, body)
	change.xor(w.churn[id])
	return step{"UPDATE churn SET body = ? WHERE id = ?", []any{body, id}, change}
}

func (w *Writer) remove() step {
	i := w.rnd.IntN(len(w.ids))
	id := w.ids[i]
	change := w.churn[id]
	delete(w.churn, id)
	w.ids = append(w.ids[:i], w.ids[i+1:]...)
	return step{"DELETE FROM churn WHERE id = ?", []any{id}, change}
}
