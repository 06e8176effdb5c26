/** The effects of a leader whose process remembers nothing, in their order: writes to the API server, and drains. */
import type { Drains } from '../../src/drain/running-drains.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import type { KubeObject, Resource } from '../../src/kube/resources.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import type { Edge } from './explorer.ts';

export interface KnownDrain {
  readonly kind: 'draining' | 'drained';
  readonly owner: string;
}

/** The object after the write; undefined if it was deleted. */
export interface WriteDeed {
  readonly kind: 'write';
  readonly key: string;
  readonly object: KubeObject | undefined;
}

/** A drain begins, or, without `drain`, it ends. */
export interface DrainDeed {
  readonly kind: 'drain';
  readonly node: string;
  readonly drain: KnownDrain | undefined;
}

export type Drained = Readonly<Record<string, KnownDrain>>;

/** Returns a client that lists each successful write. The API server dates each object that is created. */
export function recordingClient(
  client: KubeClient,
  deeds: Pick<WriteDeed[], 'push'>,
  now: number,
): Pick<KubeClient, 'create'> & KubeClient {
  const wrote = <T extends KubeObject>({ plural }: Resource<T>, object: T): T => {
    deeds.push({ kind: 'write', key: `${plural}/${object.metadata.name}`, object });
    return object;
  };
  return {
    ...client,
    create: async (resource, object, more) => {
      const metadata = { ...object.metadata, creationTimestamp: rfc3339(now) };
      return wrote(resource, await client.create(resource, { ...object, metadata }, more));
    },
    replace: async (resource, object, more) =>
      wrote(resource, await client.replace(resource, object, more)),
    patch: async (resource, name, patch, more) =>
      wrote(resource, await client.patch(resource, name, patch, more)),
    delete: async (resource, name, more) => {
      await client.delete(resource, name, more);
      deeds.push({ kind: 'write', key: `${resource.plural}/${name}`, object: undefined });
    },
  };
}

/** Lists which drains begin and end. The model decides when a drain is over. */
export function recordingDrains(
  { drains, now }: { readonly drains: ReadonlyMap<string, KnownDrain>; readonly now: number },
  deeds: Pick<DrainDeed[], 'push'>,
): Drains {
  const known = new Map(drains);
  const end = (node: string): void => {
    if (!known.delete(node)) return;
    deeds.push({ kind: 'drain', node, drain: undefined });
  };
  return {
    stateOf: (node) => {
      const { kind } = known.get(node) ?? {};
      if (kind === undefined) return undefined;
      return kind === 'draining' ? { kind, since: now, left: 1 } : { kind: 'drained', since: now };
    },
    begin: (node, owner) => {
      if (known.has(node)) return;
      const drain: KnownDrain = { kind: 'draining', owner };
      known.set(node, drain);
      deeds.push({ kind: 'drain', node, drain });
    },
    forget: async (node) => await Promise.resolve(end(node)),
    keep: (isWanted) => {
      for (const [node, { owner }] of known) if (!isWanted(node, owner)) end(node);
    },
    onChange: () => () => undefined,
    run: async () => await Promise.resolve(),
  };
}

/** Returns what the process knows of its drains after this one has begun or ended. */
export function withDrain(drains: Drained, { node, drain }: DrainDeed): Drained {
  const { [node]: _, ...others } = drains;
  return drain ? { ...others, [node]: drain } : others;
}

export function wordsForDeed(deed: WriteDeed | DrainDeed): string {
  if (deed.kind === 'drain') return `${deed.drain ? 'begins' : 'ends'} the drain of ${deed.node}`;
  return `${deed.object ? 'writes' : 'deletes'} ${deed.key}`;
}

/** How a model carries out the deeds of a leader. */
export interface Carrying<S, D> {
  readonly after: (state: S, deed: D) => S;
  readonly wordsFor: (deed: D) => string;
  readonly textOf: (state: S) => string;
}

/**
 * Returns the edges of a leader. It has all of these effects, or only the effects up to one of its requests, because the
 * next request fails. A drain alone has no effect on the cluster.
 */
export function edgesOfDeeds<S, D extends { readonly kind: string }>(
  { after, wordsFor, textOf }: Carrying<S, D>,
  state: S,
  deeds: readonly D[],
  who = 'a leader',
): Edge[] {
  const edges: Edge[] = [];
  let reached = state;
  const words: string[] = [];
  for (const deed of deeds) {
    reached = after(reached, deed);
    words.push(wordsFor(deed));
    const fair = words.length === deeds.length;
    if (!fair && deed.kind === 'drain') continue;
    const label = `${who} ${words.join(', ')}${fair ? '' : ', and no more'}`;
    edges.push({ label, fair, to: textOf(reached) });
  }
  return edges;
}
