//! Lists as streams: rows one by one, with pages behind them that are fetched as they are needed.

use std::{
    collections::VecDeque,
    future::IntoFuture,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::{Stream, StreamExt as _};

use super::ClientError;
use crate::future::BoxFuture;

/// The most rows of a page. A list holds no more of them in memory than one page.
const PAGE: usize = 100;

/// A list of what an engine has, which may be longer than fits in memory.
///
/// It is a [`Stream`](futures_util::Stream) of results. The first page is fetched when the first row is
/// asked for, the next when the rows of the first have been taken. After an error the list ends.
///
/// - `list.await` collects all rows; put [`take`](List::take) before it unless the list is short.
/// - `while let Some(row) = list.try_next().await? { … }` goes through them one by one.
#[must_use = "nothing is listed until rows are asked for"]
pub struct List<T> {
    rows: VecDeque<T>,
    pages: Pages<T>,
    /// How many rows may still be returned.
    left: usize,
}

/// What comes after the rows that are there.
enum Pages<T> {
    Next(Fetch<T>),
    Fetching(BoxFuture<'static, Result<Page<T>, ClientError>>),
    End,
}

/// Fetches a page of at most this many rows.
pub(crate) type Fetch<T> =
    Box<dyn FnOnce(usize) -> BoxFuture<'static, Result<Page<T>, ClientError>> + Send>;

/// Some rows, and how to fetch the next; none if these are the last.
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) next: Option<Fetch<T>>,
}

impl<T> List<T> {
    pub(crate) fn new(first: Fetch<T>) -> Self {
        Self { rows: VecDeque::new(), pages: Pages::Next(first), left: usize::MAX }
    }

    /// At most this many rows. No more are fetched.
    pub fn take(mut self, rows: usize) -> Self {
        self.left = self.left.min(rows);
        self
    }

    /// The next row; none at the end of the list.
    pub async fn try_next(&mut self) -> Result<Option<T>, ClientError> {
        self.next().await.transpose()
    }

    /// All rows. The same as awaiting the list.
    pub async fn collect(mut self) -> Result<Vec<T>, ClientError> {
        let mut rows = Vec::new();
        while let Some(row) = self.try_next().await? {
            rows.push(row);
        }
        Ok(rows)
    }
}

// Nothing in it is pinned: the future is boxed, and the rows are only moved.
impl<T> Unpin for List<T> {}

impl<T> Stream for List<T> {
    type Item = Result<T, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { rows, pages, left } = &mut *self;
        loop {
            if *left == 0 {
                return Poll::Ready(None);
            }
            if let Some(row) = rows.pop_front() {
                *left -= 1;
                return Poll::Ready(Some(Ok(row)));
            }
            *pages = match std::mem::replace(pages, Pages::End) {
                Pages::End => return Poll::Ready(None),
                Pages::Next(fetch) => Pages::Fetching(fetch(PAGE.min(*left))),
                Pages::Fetching(mut page) => match page.as_mut().poll(cx) {
                    Poll::Pending => {
                        *pages = Pages::Fetching(page);
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(Ok(page)) => {
                        rows.extend(page.rows);
                        page.next.map_or(Pages::End, Pages::Next)
                    }
                },
            };
        }
    }
}

impl<T: Send + 'static> IntoFuture for List<T> {
    type Output = Result<Vec<T>, ClientError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.collect())
    }
}

impl<T> std::fmt::Debug for List<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("List").field("fetched", &self.rows.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::ready,
        sync::{Arc, Mutex},
    };

    use futures_util::{FutureExt as _, TryStreamExt as _};

    use super::*;

    /// The sizes of the pages that were asked for.
    type Asked = Arc<Mutex<Vec<usize>>>;

    /// The numbers from `first` up to `end`; a page fails if it would begin at `broken`.
    fn numbers(first: usize, end: usize, broken: usize, asked: Asked) -> Fetch<usize> {
        Box::new(move |limit| {
            asked.lock().unwrap().push(limit);
            if first == broken {
                return Box::pin(ready(Err(ClientError::NotFound)));
            }
            let until = end.min(first + limit);
            let next = (until < end).then(|| numbers(until, end, broken, asked));
            Box::pin(ready(Ok(Page { rows: (first..until).collect(), next })))
        })
    }

    fn list(end: usize, broken: usize) -> (List<usize>, Asked) {
        let asked = Asked::default();
        (List::new(numbers(0, end, broken, asked.clone())), asked)
    }

    #[test]
    fn pages_are_fetched_as_rows_are_taken() {
        let (mut list, asked) = list(250, usize::MAX);
        assert!(asked.lock().unwrap().is_empty());
        for number in 0..100 {
            assert_eq!(list.try_next().now_or_never(), Some(Ok(Some(number))));
        }
        assert_eq!(*asked.lock().unwrap(), [100]);
        assert_eq!(list.await_all().len(), 150);
        assert_eq!(*asked.lock().unwrap(), [100; 3]);
    }

    #[test]
    fn no_more_are_fetched_than_taken() {
        let (list, asked) = list(250, usize::MAX);
        assert_eq!(list.take(120).take(200).await_all().len(), 120);
        assert_eq!(*asked.lock().unwrap(), [100, 20]);
        let (none, asked) = self::list(250, usize::MAX);
        assert!(none.take(0).await_all().is_empty() && asked.lock().unwrap().is_empty());
    }

    #[test]
    fn an_error_ends_the_list() {
        let (mut list, _) = list(250, 100);
        let all = list.by_ref().take(100).try_collect::<Vec<_>>().now_or_never().unwrap();
        assert_eq!(all.unwrap().len(), 100);
        assert_eq!(list.try_next().now_or_never(), Some(Err(ClientError::NotFound)));
        assert_eq!(list.try_next().now_or_never(), Some(Ok(None)));
    }

    impl List<usize> {
        fn await_all(self) -> Vec<usize> {
            self.collect().now_or_never().unwrap().unwrap()
        }
    }
}
