//! Tests of both kinds of pool, and of the free list against a plain stack.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

fn sized(buffers: usize, bytes: usize) -> Pool {
    let pool = Pool::default();
    pool.size("t", PoolSize::new(buffers, bytes)).unwrap();
    pool
}

fn lend(pool: &Pool, length: usize) -> Loan {
    pool.lend("t", length).unwrap()
}

#[test]
fn the_last_buffer_back_is_the_first_one_out() {
    for pool in [Pool::default(), sized(4, 100)] {
        let (first, second) = (lend(&pool, 100), lend(&pool, 100));
        let at = first.as_ptr();
        drop(second);
        let shared = first.freeze();
        let also = shared.clone();
        drop(shared);
        assert_eq!(also.len(), 100);
        drop(also);
        assert_eq!(lend(&pool, 90).as_ptr(), at);
    }
}

#[test]
fn a_growing_pool_leaves_the_large_buffer_to_a_large_loan() {
    let pool = Pool::default();
    let (small, large) = (lend(&pool, 64), lend(&pool, 4096));
    let (small_at, large_at) = (small.as_ptr(), large.as_ptr());
    drop(small);
    drop(large);
    let (small, large) = (lend(&pool, 60), lend(&pool, 4000));
    assert_eq!((small.as_ptr(), large.as_ptr()), (small_at, large_at));
}

#[test]
fn a_pool_has_an_end_and_counts() {
    for (pool, buffers) in [(Pool::default(), LOANS_MAX), (sized(3, 8), 3)] {
        let mut lent: Vec<Loan> = (0..buffers).map(|_| lend(&pool, 8)).collect();
        let refused = pool.lend("t", 8).unwrap_err().to_string();
        assert_eq!(refused, format!("all {buffers} buffers of topic `t` are in use: a subscriber holds its samples"));
        lent.truncate(1);
        lent.push(lend(&pool, 8));
        let snapshot = pool.snapshot().unwrap();
        assert_eq!((snapshot.lent, snapshot.most_lent, snapshot.exhausted), (2, buffers, 1));
    }
}

#[test]
fn a_loan_longer_than_the_class_is_refused_with_the_key() {
    let pool = sized(1, 1000);
    assert_eq!(lend(&pool, 1000).len(), 1000);
    assert_eq!(
        pool.lend("t", 1001).unwrap_err().to_string(),
        "a loan of 1001 bytes is longer than the 1000 of a buffer of topic `t`; `topics.t.pool.octets` makes them longer"
    );
}

#[test]
fn a_pool_is_sized_once_and_before_the_first_loan() {
    let size = PoolSize::new(2, 8);
    let used = Pool::default();
    drop(lend(&used, 8));
    for pool in [used, sized(1, 8)] {
        let refused = pool.size("t", size).unwrap_err().to_string();
        assert_eq!(refused, "topic `t`: a pool is sized once, before the first loan");
    }
}

#[test]
fn a_size_that_no_pool_can_have_is_refused() {
    for (buffers, bytes) in [
        (0, 8),
        (8, 0),
        (POOL_BUFFERS_MAX + 1, 1),
        (1, LOAN_BYTES_MAX + 1),
        (5, LOAN_BYTES_MAX),
        (usize::MAX, usize::MAX),
    ] {
        let refused = Pool::default().size("t", PoolSize::new(buffers, bytes)).unwrap_err();
        assert!(refused.to_string().ends_with(&format!("and not {buffers} of {bytes}")), "{refused}");
    }
}

#[test]
fn buffers_do_not_overlap_and_the_region_holds_them_all() {
    for bytes in [1, 63, 64, 65, 4096, 1 << 20] {
        let pool = sized(5, bytes);
        let mut lent: Vec<Loan> = (0..5).map(|_| lend(&pool, bytes)).collect();
        (1..).zip(&mut lent).for_each(|(mark, loan)| loan.fill(mark));
        assert!((1..).zip(&lent).all(|(mark, loan)| loan.iter().all(|byte| *byte == mark)));
    }
}

#[test]
fn a_region_of_some_length_takes_whole_huge_pages_and_smaller_ones_have_none() {
    let pool = sized(3, 1 << 20);
    let region = pool.snapshot().unwrap().region.unwrap();
    assert_eq!((region.bytes, lend(&pool, 8).as_ptr().addr() % (2 << 20)), (4 << 20, 0));
    assert!(region.huge_bytes <= region.bytes);
    assert_eq!(sized(2, 64 << 10).snapshot().unwrap().region.unwrap().bytes, 2 << 20);
    let small = sized(3, 1000).snapshot().unwrap().region.unwrap();
    assert_eq!((small.bytes, small.huge_bytes), (4096, 0));
}

/// The number of huge pages depends on the fragmentation of free memory; the advice and the kernel's report do not.
#[test]
fn huge_pages_are_asked_for_where_they_are_wanted() {
    for huge_pages in [true, false] {
        let pool = Pool::default();
        let made = pool.size("t", PoolSize { huge_pages, ..PoolSize::new(4, 2 << 20) }).unwrap();
        let start = lend(&pool, 1).as_ptr().addr();
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (_, own) = smaps.split_once(&format!("\n{start:x}-{:x} ", start + (8 << 20))).unwrap();
        let flags = own.lines().find(|line| line.starts_with("VmFlags:")).unwrap();
        assert_eq!(flags.contains(" hg"), huge_pages, "{flags}");
        let account = own.lines().find_map(|line| line.strip_prefix("AnonHugePages:")).unwrap();
        let huge_bytes = account.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024;
        assert_eq!(made.region.unwrap().huge_bytes, huge_bytes);
    }
}

#[test]
fn a_buffer_is_in_one_hand_whatever_threads_do() {
    let pool = Arc::new(sized(3, 256));
    let hand = |mark: u8| {
        for _ in 0..5_000 {
            if let Ok(mut loan) = pool.lend("t", 256) {
                loan.fill(mark);
                std::thread::yield_now();
                assert!(loan.freeze().iter().all(|byte| *byte == mark));
            }
        }
    };
    std::thread::scope(|scope| (1..=4).for_each(|mark| drop(scope.spawn(move || hand(mark)))));
    assert_eq!(pool.snapshot().unwrap().lent, 0);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Lend,
    /// One of the loans in use, modulo their count.
    Return(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(prop_oneof![3 => Just(Step::Lend), 2 => any::<usize>().prop_map(Step::Return)], 0..200)
}

proptest! {
    /// The model is a stack of addresses: a loan pops the top, and an empty stack refuses.
    #[test]
    fn a_sized_pool_is_a_stack(buffers in 1_usize..8, steps in steps()) {
        let pool = sized(buffers, 100);
        let all: Vec<Loan> = (0..buffers).map(|_| lend(&pool, 1)).collect();
        let mut free: Vec<*const u8> = all.iter().map(|loan| loan.as_ptr()).collect();
        all.into_iter().for_each(drop);
        let (mut out, mut exhausted) = (Vec::<Loan>::new(), 0);
        for step in steps {
            match step {
                Step::Lend => match free.pop() {
                    Some(expected) => {
                        let loan = lend(&pool, 100);
                        prop_assert_eq!(loan.as_ptr(), expected);
                        out.push(loan);
                    }
                    None => {
                        prop_assert!(pool.lend("t", 100).is_err());
                        exhausted += 1;
                    }
                },
                Step::Return(_) if out.is_empty() => {}
                Step::Return(which) => {
                    let loan = out.swap_remove(which % out.len());
                    free.push(loan.as_ptr());
                    drop(loan.freeze());
                }
            }
            let snapshot = pool.snapshot().unwrap();
            prop_assert_eq!((snapshot.lent, snapshot.exhausted), (out.len(), exhausted));
        }
    }
}
