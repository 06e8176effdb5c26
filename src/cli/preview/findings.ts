/** What a preview finds beside the decision: the rule of the policy, drains, downloads, and how long it takes. */
import type { BlockingBudget } from '../../drain/budgets.ts';
import type { RefusedPod } from '../../drain/pods.ts';
import { factsOf } from '../../engine/gates/types.ts';
import type { Rollout } from '../../engine/model/recorded.ts';
import { coveringPolicies, type PlanRef } from '../../engine/policy/choose-policy.ts';
import type { KubeObject } from '../../kube/types.ts';
import { decodeReport, decodeSignal } from '../../signal/annotations.ts';
import { messageOf } from '../../util/errors.ts';
import { printableUrl, withoutUserinfo } from '../../util/printable-url.ts';
import { Semaphore } from '../../util/waits.ts';
import type { Sources } from '../status/answers.ts';
import { type Policies, policyOf } from '../status/load.ts';
import type { Inspection } from '../status/observe.ts';

/** All in milliseconds. */
export interface Duration {
  readonly ms: number;
  readonly perTargetMs: number;
  /** measured: what nine in ten of these nodes took the last time · assumed: nothing was measured. */
  readonly basis: 'measured' | 'assumed';
  readonly samples: number;
}

/** A node of k0s from its signal to its last report, with nothing to drain and a tiny download: docs/internals/benchmark.md. */
const ASSUMED_MS = 20_000;

/** A node that runs the version already: its agent reports that it is done. */
const THERE_MS = 1000;

/** Of one stage, by name, as a preview has them. */
interface Waves {
  readonly waves: readonly (readonly string[])[];
  readonly moving: readonly string[];
  /** At the version already. */
  readonly there: readonly string[];
}

/** Of all waves, one after the other; undefined if nothing is left to do. */
export function durationOf(stages: readonly Waves[], inspection: Inspection): Duration | undefined {
  const waves = stages.flatMap(({ moving, waves, there }) => [
    ...(moving.length > 0 ? [true] : []),
    ...waves.map((names) => names.some((name) => !there.includes(name))),
  ]);
  if (waves.length === 0) return undefined;
  const long = waves.filter(Boolean).length;
  const spent = measured(inspection);
  const perTargetMs = spent[Math.ceil(spent.length * 0.9) - 1] ?? ASSUMED_MS;
  const basis = spent.length > 0 ? 'measured' : 'assumed';
  return { ms: long * perTargetMs + (waves.length - long) * THERE_MS, perTargetMs, basis, samples: spent.length };
}

/** What each target reported of its last successful update, of this plan or an earlier one; sorted. */
function measured({ dialect, world, snapshot }: Inspection): number[] {
  const targets = snapshot.rollout.stages.flatMap((stage) => stage.targets.map((target) => ({ stage, target })));
  return targets
    .flatMap(({ stage, target }) => {
      const annotations = dialect.objectOf(stage, target, world)?.metadata.annotations;
      const signal = decodeSignal(annotations);
      if (signal?.status?.status !== 'Completed') return [];
      const { spent } = decodeReport(annotations, signal.created) ?? {};
      return spent === undefined ? [] : [Object.values(spent).reduce((sum, ms) => sum + ms, 0)];
    })
    .filter((ms) => ms > 0)
    .toSorted((a, b) => a - b);
}

export interface PolicyRule {
  readonly name: string;
  /** Why it applies, as half a sentence about the policy. */
  readonly rule: string;
}

/** Undefined if no policy covers the plan. */
export function policyRule(policies: Policies, dialect: string, plan: KubeObject): PolicyRule | undefined {
  const { name: held } = policyOf(policies, { name: dialect }, plan);
  if (held === undefined) return undefined;
  const { name, namespace } = plan.metadata;
  const ref: PlanRef = { dialect, namespace, name };
  const [first, ...others] = coveringPolicies(policies.list(), ref);
  const wider = others.map(({ policy }) => policy.metadata.name);
  const over = wider.length > 0 ? `, before ${wider.join(', ')}` : '';
  return { name: held, rule: `${entryOf(first?.rank ?? 0, ref)}${over}` };
}

/** The rank is a sum: see choose-policy.ts. */
function entryOf(rank: number, { dialect, namespace, name }: PlanRef): string {
  const given = [
    ...(rank % 2 === 1 ? [`dialect ${dialect}`] : []),
    ...(rank % 4 >= 2 ? [`namespace ${namespace}`] : []),
    ...(rank >= 4 ? [`name ${name}`] : []),
  ];
  return given.length === 0 ? 'covers every plan' : `covers plans with ${given.join(', ')}`;
}

export interface PlanDrainPreview {
  readonly nodes: number;
  readonly evictable: number;
  /** Only nodes that cannot be drained now. */
  readonly blocked: readonly BlockedDrain[];
  /** Why nodes were not checked. */
  readonly unseen: string | undefined;
}

interface BlockedDrain {
  readonly target: string;
  readonly budgets: readonly BlockingBudget[];
  readonly refused: readonly RefusedPod[];
}

/** Each needs some requests, and nobody reads a longer answer. */
const MOST_NODES = 200;
const AT_ONCE = 8;

/** Undefined if the leader drains nothing of the plan; never rejects. */
export async function lookAtDrains(
  { snapshot, policy }: Inspection,
  sources: Pick<Sources, 'drainPreview'>,
): Promise<PlanDrainPreview | undefined> {
  if (!policy.drain.enabled) return undefined;
  const pending = snapshot.rollout.stages.flatMap(({ targets }) => targets.filter(({ state }) => state === 'pending'));
  const byNode = new Map(
    pending.flatMap((target) => {
      const { node } = factsOf(snapshot, target);
      return node ? [[node.name, target.name] as const] : [];
    }),
  );
  if (byNode.size === 0) return undefined;
  const some = [...byNode].slice(0, MOST_NODES);
  const places = new Semaphore(AT_ONCE);
  const looks = await Promise.allSettled(
    some.map(async ([node, target]) => ({
      target,
      drainPreview: await places.within(async () => await sources.drainPreview(node, policy.drain.options)),
    })),
  );
  const seen = looks.flatMap((look) => (look.status === 'fulfilled' ? [look.value] : []));
  const problem = looks.find((look) => look.status === 'rejected')?.reason as unknown;
  const rest = byNode.size - some.length;
  const unseen =
    problem === undefined ? (rest > 0 ? `${rest} more nodes were not checked` : undefined) : messageOf(problem);
  return {
    nodes: seen.length,
    evictable: seen.reduce((sum, { drainPreview }) => sum + drainPreview.evictable, 0),
    blocked: seen
      .filter(({ drainPreview }) => drainPreview.obstacles.length + drainPreview.refused.length > 0)
      .map(({ target, drainPreview: { obstacles, refused } }) => ({ target, budgets: obstacles, refused })),
    unseen,
  };
}

export interface Download {
  /** `<os>-<architecture>`. */
  readonly platform: string;
  readonly version: string;
  /** Printable: without its secrets. */
  readonly url: string;
  readonly reachable: boolean;
  /** Absent if the server does not say it. */
  readonly bytes?: number;
  readonly problem?: string;
  /** False if the plan has no hash for it. */
  readonly verified: boolean;
}

interface DownloadParts {
  readonly fetch: typeof globalThis.fetch;
  readonly abort: AbortSignal;
}

/** Milliseconds for one request. */
const TIMEOUT_MS = 5000;

/** Each once; never rejects. */
export async function probeDownloads({ stages }: Rollout, parts: DownloadParts): Promise<readonly Download[]> {
  const wanted = stages.flatMap(({ version, payloads = {} }) =>
    Object.entries(payloads).map(([platform, { url, sha256 }]) => ({
      platform,
      version,
      url,
      verified: sha256 !== undefined,
    })),
  );
  const distinct = new Map(wanted.map((each) => [JSON.stringify(each), each]));
  return await Promise.all(
    [...distinct.values()].map(async (each) => ({
      ...each,
      url: printableUrl(each.url),
      ...(await probe(each.url, parts)),
    })),
  );
}

type Found = Pick<Download, 'reachable' | 'bytes' | 'problem'>;

/** Some servers do not support HEAD, or do not give the size with it: then the first byte is requested. */
async function probe(url: string, parts: DownloadParts): Promise<Found> {
  try {
    const head = await ask(url, 'HEAD', parts);
    const size = head.ok ? sizeIn(head.headers.get('content-length')) : undefined;
    return size === undefined ? foundBy(await ask(url, 'GET', parts)) : { reachable: true, bytes: size };
  } catch (error) {
    return { reachable: false, problem: messageOf(error) };
  }
}

async function ask(url: string, method: 'HEAD' | 'GET', { fetch, abort }: DownloadParts): Promise<Response> {
  const { address, headers: credentials } = withoutUserinfo(url);
  const headers = method === 'GET' ? { ...credentials, Range: 'bytes=0-0' } : credentials;
  const ending = AbortSignal.any([abort, AbortSignal.timeout(TIMEOUT_MS)]);
  const response = await fetch(address, { method, headers, signal: ending });
  // A server without ranges sends everything.
  await response.body?.cancel();
  return response;
}

function foundBy({ ok, status, headers }: Response): Found {
  if (!ok) return { reachable: false, problem: `answered ${status}` };
  const length = status === 206 ? headers.get('content-range')?.split('/')[1] : headers.get('content-length');
  const bytes = sizeIn(length ?? null);
  return { reachable: true, ...(bytes === undefined ? {} : { bytes }) };
}

function sizeIn(text: string | null): number | undefined {
  return text !== null && /^\d+$/.test(text) ? Number(text) : undefined;
}
