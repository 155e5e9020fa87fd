"""Messages between the replicas of a gateway, through Redis.

A change of a list makes the others read it again. A session that was changed or ended is read again from the
store. A client's answer, or its cancellation, is passed to the replica that waits for it. A call that waits
for an answer stays where it is: the request that continues it is passed to that replica, its messages back,
and so is the request of a browser for a sign-in that began elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec
from msgspec import Struct

from dragoman.errors import StoreUnavailable
from dragoman.gateway.access import KnownCaller
from dragoman.gateway.outbox import NotReading, Outbox
from dragoman.gateway.sign_in_pages import PageAnswer, PageRequest
from dragoman.gateway.store.redis import RedisStore
from dragoman.interaction import Caller
from dragoman.permissions.grants import GrantKey
from dragoman.protocol import INTERNAL_ERROR, INVALID_PARAMS
from dragoman.servers.shared_reads import SharedReads, SharedStore
from dragoman.wire.codec import encode_error
from dragoman.wire.messages import MessageId
from dragoman.wire.server.service import ListKind

if TYPE_CHECKING:
    from dragoman.gateway.gateway import Gateway
    from dragoman.host import Host

ECHO_SECONDS: Final = 5.0
"""A change of a list that follows another replica's within this time is not passed back."""
PAUSE_SECONDS: Final = 0.05
"""The pause between two announcements that resources of a server have changed."""
RETRY_SECONDS: Final = 1.0
"""The pause after a failure of the store, before grants are saved or read again."""
PRESENCE_SECONDS: Final = 5.0
"""The interval at which a replica that answers for this one is checked to be running."""
PAGE_SECONDS: Final = 60.0
"""How long a browser waits for a page of another replica: a sign-in may have to be ended first."""
GONE: Final = "requestState: the replica of the gateway that held the call is gone; make the call again"
LOST: Final = "the reply was lost between two replicas of the gateway; the call may have been carried out"


class ListChanged(Struct, tag=True):
    server: str
    kind: ListKind


class GrantsChanged(Struct, tag=True):
    pass


class SessionChanged(Struct, tag=True):
    """A session has another state, or has ended."""

    session: str


class ToSession(Struct, tag=True):
    """A reply or a notification of the client of a session, or of an SSE connection."""

    session: str
    caller: str
    message: bytes


class Continue(Struct, tag=True):
    """A request that is sent again with answers, for the replica that holds the call."""

    number: int
    caller: KnownCaller
    view: str
    message: bytes


class ForwardedOutput(Struct, tag=True):
    """A message about a request that another replica has passed on; None at its end."""

    number: int
    message: bytes | None


class Cancel(Struct, tag=True):
    """The client of a request that was passed on has disconnected."""

    number: int


class AccountChanged(Struct, tag=True):
    """A sign-in was made or ended, or its tokens were refreshed."""

    key: str


class ReadsChanged(Struct, tag=True):
    """A server has reported that resources have changed."""

    server: str


class Page(Struct, tag=True):
    """A browser asks for a page of a sign-in that another replica knows."""

    number: int
    asked: PageRequest


class Present(Struct, tag=True):
    """A check whether a replica runs: only then is it received. `number`: of a request that it should be
    answering; `NotAnswering` is sent back if it is not."""

    number: int = 0


class NotAnswering(Struct, tag=True):
    """A request that was passed on is not being answered: it or its reply was lost, with Redis perhaps."""

    number: int


Content = (
    ListChanged
    | GrantsChanged
    | SessionChanged
    | AccountChanged
    | ReadsChanged
    | ToSession
    | Continue
    | Page
    | ForwardedOutput
    | Cancel
    | Present
    | NotAnswering
)


class ReplicaMessage(Struct):
    sender: str
    content: Content


class Replicas:
    """This replica's view of the others."""

    def __init__(self, gateway: Gateway, store: RedisStore) -> None:
        self._gateway = gateway
        self._store = store
        self.on_session: Callable[[str | None], None] = lambda _: None
        """Called with the id of a session that was changed elsewhere; None: any may have been."""
        self.on_account: Callable[[str | None], None] = lambda _: None
        """Called with the key of an account that was changed elsewhere; None: any may have been."""
        self.on_message: list[Callable[[ToSession], object]] = []
        """Called with each message of a client that came to another replica."""
        self._numbers = itertools.count(1)
        self._forwarded: dict[int, tuple[Outbox, MessageId]] = {}
        """The receivers of messages about requests that another replica answers, and the ids of these
        requests."""
        self._tasks: dict[object, asyncio.Task[None]] = {}
        """Requests that are answered for other replicas, by sender and number, and what is sent to them."""
        self._echoes: dict[tuple[str, ListKind], float] = {}
        """The time until which a change of a list is attributed to another replica."""
        self._known_lists: set[tuple[str, ListKind]] = {
            (server, kind)
            for server, status in gateway.host.servers.items()
            if status.status == "connected"
            for kind in get_args(ListKind)
        }
        """The lists that were read since their server was connected."""
        self._unsaved: dict[GrantKey, str | None] = {}
        """Grants, and revoked ones, that are not in the store yet."""
        self._exchanging: asyncio.Task[None] | None = None
        self._is_exchange_due = False
        self._is_read_due = False
        """Whether the grants of the store are to be read as well."""
        self._is_announcement_due = False
        """Whether the other replicas are to be notified that the store has other grants."""
        gateway.host.grants().on_change = self._granted

    @property
    def name(self) -> str:
        return self._store.replica

    async def run(self) -> None:
        """Takes the messages of other replicas, until it is cancelled."""
        try:
            async with contextlib.aclosing(self._store.messages()) as messages:
                async for message in messages:
                    if message is None:
                        self.on_session(None)
                        self.on_account(None)
                        self._forget_reads(None)
                        self._exchange_soon(reads=True)
                        continue
                    with contextlib.suppress(msgspec.MsgspecError):  # of another version
                        found = _decoder.decode(message)
                        if found.sender != self.name:
                            self._take(found.sender, found.content)
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _take(self, sender: str, content: Content) -> None:
        match content:
            case ListChanged(server=server, kind=kind):
                self._echoes[server, kind] = monotonic() + ECHO_SECONDS
                self._gateway.host.read_list_again(server, kind)
            case GrantsChanged():
                self._exchange_soon(reads=True)
            case SessionChanged(session=session):
                self.on_session(session)
            case AccountChanged(key=key):
                self.on_account(key)
            case ReadsChanged(server=server):
                self._forget_reads(server)
            case ToSession():
                for take in self.on_message:
                    take(content)
            case Continue():
                self._start((sender, content.number), self._answer(sender, content))
            case Page():
                self._start((sender, content.number), self._answer_page(sender, content))
            case ForwardedOutput(number=number, message=message):
                self._put(number, message)
            case Cancel(number=number):
                if (task := self._tasks.get((sender, number))) is not None:
                    task.cancel()
            case Present(number=number):
                if number and (sender, number) not in self._tasks:
                    self._send_soon(NotAnswering(number), sender)
            case NotAnswering(number=number):
                self._fail(number, INTERNAL_ERROR, LOST)

    def _start(self, key: object, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        own = key if key not in self._tasks else task
        self._tasks[own] = task
        task.add_done_callback(lambda _: self._tasks.pop(own, None))
        return task

    async def send(self, content: Content, replica: str = "") -> int:
        """Sends a message; returns how many replicas receive it: with a name, 0 if that replica has ended."""
        return await self._store.publish(_encoder.encode(ReplicaMessage(self.name, content)), replica)

    def _send_soon(self, content: Content, replica: str = "") -> None:
        async def send() -> None:
            with contextlib.suppress(StoreUnavailable):
                await self.send(content, replica)

        self._start(object(), send())

    # Lists.

    def list_read(self, server: str, kind: ListKind) -> None:
        """A list of a server was read here. A change is passed on, unless another replica has reported it."""
        if (server, kind) not in self._known_lists:
            self._known_lists.add((server, kind))
        elif self._echoes.get((server, kind), 0.0) < monotonic():
            self._send_soon(ListChanged(server, kind))

    def resources_reported(self, host: Host, server: str) -> None:
        """A server may have reported that resources have changed."""
        key = ("resources", host, server)

        async def announce() -> None:
            with contextlib.suppress(StoreUnavailable):  # the next request for one tries again
                while await host.announce_changed_reads(server):  # noqa: ASYNC110  it limits the rate
                    await asyncio.sleep(PAUSE_SECONDS)

        if key not in self._tasks:
            self._start(key, announce())

    def _forget_reads(self, server: str | None) -> None:
        for host in self._gateway.hosts():
            host.forget_reads(server)

    def server_lost(self, server: str) -> None:
        """Reports that a server is disconnected: its next lists are not changes."""
        self._known_lists = {each for each in self._known_lists if each[0] != server}

    # Grants. While the store does not answer, each replica uses what it knows, and keeps changes for later.

    def _granted(self, key: GrantKey, digest: str | None) -> None:
        self._unsaved[key] = digest
        self._exchange_soon()

    def _exchange_soon(self, *, reads: bool = False) -> None:
        """One task does what is due, also what comes to be due while it waits for the store."""
        self._is_exchange_due = True
        self._is_read_due |= reads
        if self._exchanging is None or self._exchanging.done():
            self._exchanging = self._start(object(), self._exchange_grants())

    async def _exchange_grants(self) -> None:
        while self._is_exchange_due:
            self._is_exchange_due = False
            is_saved, is_read = await self._grants_saved(), await self._grants_read()
            if not (is_saved and is_read):
                self._is_exchange_due = True
                await asyncio.sleep(RETRY_SECONDS)

    async def _grants_saved(self) -> bool:
        """Whether the store has all grants of this replica, and the others know of it."""
        with contextlib.suppress(StoreUnavailable):
            while self._unsaved:
                key, digest = next(iter(self._unsaved.items()))
                value = None if digest is None else msgspec.json.encode((key, digest))
                await self._store.set_grant(repr(key), value)
                self._is_announcement_due = True
                if self._unsaved.get(key) == digest:
                    self._unsaved.pop(key, None)
            if self._is_announcement_due:
                await self.send(GrantsChanged())
                self._is_announcement_due = False
            return True
        return False

    async def _grants_read(self) -> bool:
        """Whether the grants of the store are known here, if they were to be read."""
        if not self._is_read_due:
            return True
        self._is_read_due = False
        try:
            stored = await self._store.grants()
        except StoreUnavailable:
            self._is_read_due = True
            return False
        found: dict[GrantKey, str] = {}
        for each in stored:
            with contextlib.suppress(msgspec.MsgspecError):  # of another version: it is asked again
                key, found[key] = _grant_decoder.decode(each)
        for key, digest in self._unsaved.items():  # what a person has decided meanwhile stays
            found.pop(key, None)
            found |= {key: digest} if digest is not None else {}
        self._gateway.host.grants().replace_all(found)
        return True

    # Requests that another replica answers.

    async def forward(
        self, replica: str, caller: KnownCaller, view: str, message: bytes, request_id: MessageId
    ) -> Outbox:
        """Has another replica answer a request; yields the messages about it."""
        number, outbox = next(self._numbers), Outbox()
        self._forwarded[number] = (outbox, request_id)
        known = KnownCaller(Caller(caller.caller.id), caller.rights, caller.calls_per_minute)
        try:
            is_there = await self.send(Continue(number, known, view, message), replica)
        except BaseException:  # also where the client is gone before it is sent
            del self._forwarded[number]
            raise
        if is_there:
            self._start(object(), self._check_presence(number, replica))
        else:
            self._fail(number, INVALID_PARAMS, GONE)
        return outbox

    async def forget(self, replica: str, outbox: Outbox) -> None:
        """Ends a forwarded request whose client has disconnected or has the result."""
        for number in [number for number, each in self._forwarded.items() if each[0] is outbox]:
            del self._forwarded[number]
            with contextlib.suppress(StoreUnavailable):
                await self.send(Cancel(number), replica)

    async def _check_presence(self, number: int, replica: str) -> None:
        while number in self._forwarded:
            await asyncio.sleep(PRESENCE_SECONDS)
            with contextlib.suppress(StoreUnavailable):
                if number in self._forwarded and not await self.send(Present(number), replica):
                    # It has got the request: that the call can be made again is not known.
                    self._fail(number, INTERNAL_ERROR, LOST)

    def _fail(self, number: int, code: int, message: str) -> None:
        _, request_id = self._forwarded.get(number, (None, None))
        self._put(number, encode_error(request_id, code, message))
        self._put(number, None)

    def _put(self, number: int, message: bytes | None) -> None:
        outbox, _ = self._forwarded.get(number, (None, None))
        if outbox is not None and message is not None:
            outbox.put(message)
        elif outbox is not None:
            outbox.end()
            del self._forwarded[number]

    async def _answer(self, sender: str, request: Continue) -> None:
        outbox = Outbox()
        async with self._gateway.client(request.caller, lambda _: None, request.view) as connection:
            connection.receive(request.message, outbox.put, outbox.end)
            with contextlib.suppress(StoreUnavailable, NotReading):
                while (message := await outbox.get()) is not None:
                    await self.send(ForwardedOutput(request.number, message), sender)
                await self.send(ForwardedOutput(request.number, None), sender)

    # Pages of sign-ins that another replica knows.

    async def ask_page(self, replica: str, asked: PageRequest) -> PageAnswer | None:
        """The answer of another replica to a browser; None if that replica has ended."""
        number, outbox = next(self._numbers), Outbox()
        self._forwarded[number] = (outbox, None)
        try:
            async with asyncio.timeout(PAGE_SECONDS):
                is_there = await self.send(Page(number, asked), replica)
                message = await outbox.get() if is_there else None
            return None if message is None else _page_decoder.decode(message)
        except (TimeoutError, StoreUnavailable, msgspec.MsgspecError):
            return None
        finally:
            self._forwarded.pop(number, None)

    async def _answer_page(self, sender: str, page: Page) -> None:
        callers, message = self._gateway.callers, None
        try:
            if callers is not None:
                message = _encoder.encode(await callers.pages.answer_here(page.asked))
        finally:  # without an answer the browser at the other replica would wait
            with contextlib.suppress(StoreUnavailable):
                await self.send(ForwardedOutput(page.number, message), sender)


def shared_reads(store: RedisStore) -> SharedReads:
    def announce(server: str) -> Awaitable[object]:
        return store.publish(_encoder.encode(ReplicaMessage(store.replica, ReadsChanged(server))))

    return SharedReads(SharedStore(store.get_versioned, store.put, announce))


def announcing(store: RedisStore) -> Callable[[str], Awaitable[object]]:
    """Notifies all replicas that the account of a key has changed."""
    return lambda key: store.publish(_encoder.encode(ReplicaMessage(store.replica, AccountChanged(key))))


_encoder: Final = msgspec.msgpack.Encoder()
_page_decoder: Final = msgspec.msgpack.Decoder(PageAnswer)
_decoder: Final = msgspec.msgpack.Decoder(ReplicaMessage)
_grant_decoder: Final = msgspec.json.Decoder(tuple[GrantKey, str])
