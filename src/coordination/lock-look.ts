/** Reads the locks once, for commands that change nothing. */
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { printable } from '../util/printable.ts';
import { isHolderFor } from './lock-holder.ts';
import { locksOf } from './locks.ts';
import type { KnownLock, LockClient, LockKind, ToolName } from './tool.ts';
import { unservedTools } from './tool-presence.ts';

export interface LocksSeen {
  readonly known: readonly KnownLock[];
  /** One clause for each lock that could not be read. */
  readonly unseen: readonly string[];
}

type Reader = LockClient & Pick<KubeClient, 'raw'>;

/** Resolves with the locks that plans of this dialect depend on, and with the tools that were not found. A lock that cannot be read is not reported as held. */
export async function lookAtLocks(
  { client, clock }: { readonly client: Reader; readonly clock: Clock },
  dialect: string,
  coordinate: readonly ToolName[],
  abort: AbortSignal,
): Promise<LocksSeen> {
  const seen = await Promise.all(
    locksOf(coordinate).map(async (kind) => await lookOnce(kind, client, clock, dialect, abort)),
  );
  const missing = await unservedTools(client, coordinate, abort);
  return {
    known: [
      ...seen.map(({ known }) => known),
      ...missing.map((each) => ({ ...each, others: [], isOurs: true })),
    ],
    unseen: seen.flatMap(({ problem }) => problem ?? []),
  };
}

async function lookOnce(
  kind: LockKind,
  client: LockClient,
  clock: Clock,
  dialect: string,
  abort: AbortSignal,
): Promise<{ readonly known: KnownLock; readonly problem?: string }> {
  const { tool, title } = kind;
  const now = clock.now();
  try {
    const { others, renewedAt, notFound } = await kind.look(client, {
      holder: '',
      isOwn: (holder) => isHolderFor(dialect, holder),
      now,
      // There is no earlier check, so the age of the renewal is known only from the time that the holder wrote.
      ageOf: (_renewal, written) => (written === undefined ? 0 : now - Date.parse(written)),
      abort,
    });
    const known = { tool, others, isOurs: renewedAt !== undefined };
    return { known: notFound === undefined ? known : { ...known, notFound } };
  } catch (error) {
    const problem = `who holds ${title}: ${printable(messageOf(error))}`;
    return { known: { tool, others: [], isOurs: true }, problem };
  }
}
