package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
)

func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Item string }
		if !read(w, r, &in) {
			return
		}
		o, err := s.place(r.Context(), in.Item)
		answer(w, http.StatusCreated, o, err)
	})
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		o, err := s.get(number(r))
		answer(w, http.StatusOK, o, err)
	})
	mux.HandleFunc("POST /orders/{id}/pay", func(w http.ResponseWriter, r *http.Request) {
		o, err := s.pay(r.Context(), number(r))
		answer(w, http.StatusOK, o, err)
	})
	mux.HandleFunc("POST /orders/{id}/ship", func(w http.ResponseWriter, r *http.Request) {
		o, err := s.ship(r.Context(), number(r))
		answer(w, http.StatusOK, o, err)
	})
	mux.HandleFunc("POST /orders/{id}/review", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Stars int }
		if !read(w, r, &in) {
			return
		}
		o, err := s.review(r.Context(), number(r), in.Stars)
		answer(w, http.StatusOK, o, err)
	})
	return mux
}

// number returns the order's number, 0 for text that is none.
func number(r *http.Request) int {
	n, _ := strconv.Atoi(r.PathValue("id"))
	return n
}

const largestRequest = 1 << 20

func read(w http.ResponseWriter, r *http.Request, into any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, largestRequest)).Decode(into)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

func answer(w http.ResponseWriter, status int, o order, err error) {
	switch {
	case errors.Is(err, errNoOrder):
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case errors.Is(err, errState):
		http.Error(w, err.Error(), http.StatusConflict)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(o) // the client has gone
}
