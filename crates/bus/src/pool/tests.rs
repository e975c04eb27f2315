//! Tests of both kinds of pool, and of the free list against a plain stack.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

fn sized(buffers: usize, bytes: usize) -> Pool {
    let pool = Pool::default();
    pool.size("t", PoolSize::new(buffers, bytes)).unwrap();
    pool
}

fn loan(pool: &Pool, length: usize) -> Loan {
    pool.loan("t", length).unwrap()
}

#[test]
fn the_last_buffer_back_is_the_first_one_out() {
    for pool in [Pool::default(), sized(4, 100)] {
        let (first, second) = (loan(&pool, 100), loan(&pool, 100));
        let at = first.as_ptr();
        drop(second);
        let shared = first.freeze();
        let also = shared.clone();
        drop(shared);
        assert_eq!(also.len(), 100);
        drop(also);
        assert_eq!(loan(&pool, 90).as_ptr(), at);
    }
}

#[test]
fn a_growing_pool_leaves_the_large_buffer_to_a_large_loan() {
    let pool = Pool::default();
    let (small, large) = (loan(&pool, 64), loan(&pool, 4096));
    let (small_at, large_at) = (small.as_ptr(), large.as_ptr());
    drop(small);
    drop(large);
    let (small, large) = (loan(&pool, 60), loan(&pool, 4000));
    assert_eq!((small.as_ptr(), large.as_ptr()), (small_at, large_at));
}

#[test]
fn a_pool_is_bounded_and_counts() {
    for (pool, buffers) in [(Pool::default(), LOANS_MAX), (sized(3, 8), 3)] {
        let mut loans: Vec<Loan> = (0..buffers).map(|_| loan(&pool, 8)).collect();
        let refused = pool.loan("t", 8).unwrap_err().to_string();
        assert_eq!(refused, format!("all {buffers} buffers of topic `t` are in use: a subscriber holds its samples"));
        loans.truncate(1);
        loans.push(loan(&pool, 8));
        let snapshot = pool.snapshot().unwrap();
        assert_eq!((snapshot.loaned, snapshot.most_loaned, snapshot.exhausted), (2, buffers, 1));
    }
}

#[test]
fn a_loan_longer_than_a_buffer_is_refused_with_the_config_key() {
    let pool = sized(1, 1000);
    assert_eq!(loan(&pool, 1000).len(), 1000);
    assert_eq!(
        pool.loan("t", 1001).unwrap_err().to_string(),
        "a loan of 1001 bytes exceeds the 1000 bytes of a buffer of topic `t`; increase `topics.t.pool.bytes`"
    );
}

#[test]
fn a_pool_is_sized_once_and_before_the_first_loan() {
    let size = PoolSize::new(2, 8);
    let used = Pool::default();
    drop(loan(&used, 8));
    for pool in [used, sized(1, 8)] {
        let refused = pool.size("t", size).unwrap_err().to_string();
        assert_eq!(refused, "topic `t`: a pool is sized once, before the first loan");
    }
}

#[test]
fn a_size_outside_the_limits_is_refused() {
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
        let mut loans: Vec<Loan> = (0..5).map(|_| loan(&pool, bytes)).collect();
        (1..).zip(&mut loans).for_each(|(mark, loan)| loan.fill(mark));
        assert!((1..).zip(&loans).all(|(mark, loan)| loan.iter().all(|byte| *byte == mark)));
    }
}

#[test]
fn a_region_of_at_least_128_kib_takes_whole_huge_pages() {
    let pool = sized(3, 1 << 20);
    let region = pool.snapshot().unwrap().region.unwrap();
    assert_eq!((region.bytes, loan(&pool, 8).as_ptr().addr() % (2 << 20)), (4 << 20, 0));
    assert!(region.huge_page_bytes <= region.bytes);
    assert_eq!(sized(2, 64 << 10).snapshot().unwrap().region.unwrap().bytes, 2 << 20);
    let small = sized(3, 1000).snapshot().unwrap().region.unwrap();
    assert_eq!((small.bytes, small.huge_page_bytes), (4096, 0));
}

/// The number of huge pages depends on the fragmentation of free memory; the advice and the kernel's report do not.
#[test]
fn huge_pages_are_requested_if_configured() {
    for huge_pages in [true, false] {
        let pool = Pool::default();
        let made = pool.size("t", PoolSize { huge_pages, ..PoolSize::new(4, 2 << 20) }).unwrap();
        let start = loan(&pool, 1).as_ptr().addr();
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (_, own) = smaps.split_once(&format!("\n{start:x}-{:x} ", start + (8 << 20))).unwrap();
        let flags = own.lines().find(|line| line.starts_with("VmFlags:")).unwrap();
        assert_eq!(flags.contains(" hg"), huge_pages, "{flags}");
        let account = own.lines().find_map(|line| line.strip_prefix("AnonHugePages:")).unwrap();
        let huge_page_bytes = account.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024;
        assert_eq!(made.region.unwrap().huge_page_bytes, huge_page_bytes);
    }
}

#[test]
fn a_buffer_has_one_owner_with_concurrent_loans() {
    let pool = Arc::new(sized(3, 256));
    let hand = |mark: u8| {
        for _ in 0..5_000 {
            if let Ok(mut loan) = pool.loan("t", 256) {
                loan.fill(mark);
                std::thread::yield_now();
                assert!(loan.freeze().iter().all(|byte| *byte == mark));
            }
        }
    };
    std::thread::scope(|scope| (1..=4).for_each(|mark| drop(scope.spawn(move || hand(mark)))));
    assert_eq!(pool.snapshot().unwrap().loaned, 0);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Loan,
    /// One of the loans in use, modulo their count.
    Return(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(prop_oneof![3 => Just(Step::Loan), 2 => any::<usize>().prop_map(Step::Return)], 0..200)
}

proptest! {
    /// The model is a stack of addresses: a loan pops the top, and an empty stack refuses.
    #[test]
    fn a_sized_pool_is_a_stack(buffers in 1_usize..8, steps in steps()) {
        let pool = sized(buffers, 100);
        let all: Vec<Loan> = (0..buffers).map(|_| loan(&pool, 1)).collect();
        let mut free: Vec<*const u8> = all.iter().map(|loan| loan.as_ptr()).collect();
        all.into_iter().for_each(drop);
        let (mut out, mut exhausted) = (Vec::<Loan>::new(), 0);
        for step in steps {
            match step {
                Step::Loan => match free.pop() {
                    Some(expected) => {
                        let loan = loan(&pool, 100);
                        prop_assert_eq!(loan.as_ptr(), expected);
                        out.push(loan);
                    }
                    None => {
                        prop_assert!(pool.loan("t", 100).is_err());
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
            prop_assert_eq!((snapshot.loaned, snapshot.exhausted), (out.len(), exhausted));
        }
    }
}
