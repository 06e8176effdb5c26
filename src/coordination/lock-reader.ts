/** Reads the locks of other tools in the background, while unfinished plans coordinate with them. No decision waits for an answer. */
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { sameJson } from '../util/json.ts';
import { printable } from '../util/printable.ts';
import { aborted } from '../util/waits.ts';
import { LOCKS } from './locks.ts';
import type { KnownLock, LockKind, OtherLock, ToolName } from './tool.ts';

export interface LockReader {
  /** Reads the locks of these tools, and no others, for the plan from now on. */
  follow(plan: string, tools: readonly ToolName[]): void;
  forget(plan: string): void;
  /** Returns what the last look at each lock found. A lock that nobody has looked at is missing. */
  locks(): readonly KnownLock[];
  /** Calls the listener when the locks change. The result ends that. */
  onChange(listener: () => void): () => void;
  /** Runs until `stop` aborts. Before and after that nothing is read, and nothing is known. */
  run(stop: AbortSignal): Promise<void>;
}

/** Milliseconds between two looks. */
const EVERY_MS = 10_000;

interface Follower {
  readonly tool: ToolName;
  follow(plan: string): void;
  forget(plan: string): void;
  known(): KnownLock | undefined;
  begin(stop: AbortSignal): void;
  end(): void;
}

export function createLockReader(client: Pick<KubeClient, 'get'>, clock: Clock): LockReader {
  const listeners = new Set<() => void>();
  const tell = (): void => {
    for (const listener of listeners) listener();
  };
  const followers = LOCKS.map((kind) => followerOf(kind, client, clock, tell));
  return {
    follow(plan, tools) {
      for (const each of followers)
        if (tools.includes(each.tool)) each.follow(plan);
        else each.forget(plan);
    },
    forget(plan) {
      for (const each of followers) each.forget(plan);
    },
    locks: () => followers.flatMap((each) => each.known() ?? []),
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async run(stop) {
      for (const each of followers) each.begin(stop);
      await aborted(stop);
      for (const each of followers) each.end();
    },
  };
}

function followerOf(
  kind: LockKind,
  client: Pick<KubeClient, 'get'>,
  clock: Clock,
  tell: () => void,
): Follower {
  const plans = new Set<string>();
  let found: KnownLock | undefined;
  let running: AbortSignal | undefined;
  let cancel: (() => void) | undefined;
  /** The number of the current series of looks. An answer of an earlier series is dropped. */
  let series = 0;

  async function look(stop: AbortSignal): Promise<void> {
    const own = series;
    const others = await readLock(kind, client, clock.now(), stop);
    if (stop.aborted || own !== series) return;
    const now = { tool: kind.tool, others };
    const isSame = found !== undefined && sameJson(found, now);
    found = now;
    cancel = clock.schedule(EVERY_MS, () => void look(stop));
    if (!isSame) tell();
  }

  return {
    tool: kind.tool,
    follow(plan) {
      const isFirst = plans.size === 0;
      plans.add(plan);
      if (isFirst && running) void look(running);
    },
    forget(plan) {
      if (!plans.delete(plan) || plans.size > 0) return;
      cancel?.();
      series++;
      found = undefined;
    },
    known: () => found,
    begin(stop) {
      running = stop;
      if (plans.size > 0) void look(stop);
    },
    end() {
      cancel?.();
      plans.clear();
      found = undefined;
      running = undefined;
    },
  };
}

/** Resolves with the locks. A lock that cannot be read counts as held, because its holder may be at work. */
async function readLock(
  kind: LockKind,
  client: Pick<KubeClient, 'get'>,
  now: number,
  abort: AbortSignal,
): Promise<readonly OtherLock[]> {
  const { tool, title, place } = kind;
  try {
    return await kind.read(client, now, abort);
  } catch (error) {
    const message = `${title} cannot be read: ${printable(messageOf(error))}`;
    return [{ tool, message, ends: `the API server lets Refit read ${place}` }];
  }
}
