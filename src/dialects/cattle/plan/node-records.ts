/**
 * Records on each Node when the attempt of a Plan began, and when it ended. Kubernetes deletes the Jobs of a Plan, so
 * they cannot say this for long. Each Plan has its own annotations, because several Plans may upgrade one Node.
 */
import { z } from 'zod';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import type { World } from '../../../engine/contract/world.ts';
import type { Target } from '../../../engine/model/rollout.ts';
import {
  annotated,
  type KubeObject,
  kubeletVersionOf,
  type Node,
  withoutAnnotations,
} from '../../../kube/resources.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { defined, parseJson } from '../../../util/json.ts';
import { onceForEachWith } from '../../../util/memo.ts';
import { ownMember } from '../../../util/own-member.ts';
import { LONGEST_UPGRADE_MS } from '../../shared/longest-upgrade.ts';
import * as names from './names.ts';

/** The most characters of a record that Refit reads. */
const LONGEST_RECORD = 1024;
const LONGEST_NAME = 400;
const LONGEST_VERSION = 128;
/** The most milliseconds by which the clock of the leader that wrote a record may be ahead of the clock of this process. */
const SKEW_MS = 30_000;

/** A time exactly as Refit writes it, because it becomes a part of names and of messages. */
const time = z.string().refine((text) => {
  const ms = Date.parse(text);
  return !Number.isNaN(ms) && text === rfc3339(ms);
});
const version = z.string().min(1).max(LONGEST_VERSION);
/** The Plan, the Node and the hash to which a record belongs. */
const subject = {
  /** The namespace and the uid of the Plan. */
  plan: z.string().max(LONGEST_NAME),
  /** The uid of the Node. A Node that was deleted and created again has another uid. */
  node: z.string().max(LONGEST_NAME),
  hash: z.string().max(LONGEST_NAME),
};

/** The schema of the record of an attempt. The kubelet of the node can also write the record, so it must be checked. */
const attemptSchema = z.object({
  ...subject,
  /** The `since` of the intended target, which names the attempt. */
  since: time,
  /** The version of the kubelet before the first attempt with this hash. */
  from: version.optional(),
  /** The times at which the Job of the attempt was created and at which it succeeded. */
  job: time.optional(),
  succeeded: time.optional(),
});

/** The schema of the record of an upgrade that has ended well. */
const upgradeSchema = z.object({
  ...subject,
  version,
  from: version.optional(),
  begun: time.optional(),
  ended: time,
});

type Attempt = Readonly<z.infer<typeof attemptSchema>>;
type Upgrade = Readonly<z.infer<typeof upgradeSchema>>;
type Subject = Pick<Attempt, keyof typeof subject>;

const attemptIn = onceForEachWith(({ metadata }: Node, key) =>
  readRecord(attemptSchema, ownMember(metadata.annotations, key)),
);
const upgradeIn = onceForEachWith(({ metadata }: Node, key) =>
  readRecord(upgradeSchema, ownMember(metadata.annotations, key)),
);

function readRecord<T>(schema: z.ZodType<T>, text: string | undefined): T | undefined {
  if (text === undefined || text.length > LONGEST_RECORD) return undefined;
  return schema.safeParse(parseJson(text)).data;
}

/** Returns the recorded attempt of the Plan with this hash on the Node; undefined if there is no valid record. */
export function attemptOn(node: Node, plan: CattlePlan, hash: string): Attempt | undefined {
  const subject = subjectOf(node, plan, hash);
  return keysOf(names.attemptKeyOf, plan)
    .map((key) => attemptIn(node, key))
    .find((found) => found && isAbout(found, subject));
}

/**
 * Returns the recorded upgrade of the Node to this hash; undefined if there is no valid record, or if the record says
 * that the upgrade ends in the future. `now` is in milliseconds.
 */
export function upgradeOn(
  node: Node,
  plan: CattlePlan,
  hash: string,
  now = Number.POSITIVE_INFINITY,
): Upgrade | undefined {
  const subject = subjectOf(node, plan, hash);
  const found = keysOf(names.upgradeKeyOf, plan)
    .map((key) => upgradeIn(node, key))
    .find((each) => each && isAbout(each, subject));
  return found && Date.parse(found.ended) <= now + SKEW_MS ? found : undefined;
}

/**
 * Returns how many milliseconds the recorded upgrade of the Node to this hash took; undefined if no record says it. The time
 * contains the drain, and the pause of the Plan after each Job, because the node keeps its slot during both.
 */
export function tookOn(node: Node, plan: CattlePlan, hash: string): number | undefined {
  return durationOf(upgradeOn(node, plan, hash));
}

/**
 * Returns how many milliseconds the last upgrade of the Node by this Plan took, if it was an upgrade to another hash;
 * undefined if no record says it.
 */
export function earlierOn(node: Node, plan: CattlePlan, hash: string): number | undefined {
  const found = keysOf(names.upgradeKeyOf, plan)
    .map((key) => upgradeIn(node, key))
    .find((each) => each && isAbout(each, subjectOf(node, plan, each.hash)));
  return found?.hash === hash ? undefined : durationOf(found);
}

function durationOf({ begun = '', ended = '' }: Partial<Upgrade> = {}): number | undefined {
  const ms = Date.parse(ended) - Date.parse(begun);
  return ms > 0 && ms <= LONGEST_UPGRADE_MS ? ms : undefined;
}

/** Returns the version that the kubelet had before the Plan upgraded the Node to this hash; undefined if no record says it. */
export function versionBeforeOn(node: Node, plan: CattlePlan, hash: string): string | undefined {
  return (attemptOn(node, plan, hash) ?? upgradeOn(node, plan, hash))?.from;
}

/**
 * Returns the Node with the record of the attempt that the intended target begins. Returns the same Node if it has this
 * record already. `isBegun` means that a Job with this hash may have changed the node.
 */
export function withAttempt(
  node: Node,
  plan: CattlePlan,
  { since }: Target,
  { hash, version: to, isBegun }: { hash: string; version: string; isBegun: boolean },
): Node {
  const known = attemptOn(node, plan, hash);
  if (known?.since === since) return node;
  const from = known ? known.from : earlierVersion(node, isBegun ? to : undefined);
  const record: Attempt = { ...subjectOf(node, plan, hash), since, ...defined({ from }) };
  return annotated(node, { [names.attemptKeyOf(plan.metadata)]: JSON.stringify(record) });
}

/** Returns the version of the kubelet; undefined if it is unknown, or if it is the version to which a Job has already upgraded the node. */
function earlierVersion(node: Node, reached: string | undefined): string | undefined {
  const found = kubeletVersionOf(node);
  if (found === undefined || found === '' || found.length > LONGEST_VERSION) return undefined;
  return found.replaceAll('+', '-') === reached ? undefined : found;
}

/**
 * Returns what the Node says about the Job of this target, if the Job has succeeded: when it was created and when it
 * succeeded. Undefined if the Node does not say that the Job has succeeded.
 */
export function successOn(
  node: Node,
  plan: CattlePlan,
  hash: string,
  { since }: Pick<Target, 'since'>,
): { readonly attempt: string; readonly since: string } | undefined {
  const known = attemptOn(node, plan, hash);
  if (known?.succeeded === undefined || known.since !== since) return undefined;
  return { attempt: known.job ?? since, since: known.succeeded };
}

/** Returns the Node with a record of the attempt which says that its Job has succeeded. The times are in RFC 3339. */
export function withSuccess(
  node: Node,
  plan: CattlePlan,
  { since }: Target,
  { hash, created, succeeded }: Record<'hash' | 'created' | 'succeeded', string>,
): Node {
  const { from } = attemptOn(node, plan, hash) ?? {};
  const times = { since, job: created, succeeded };
  const record: Attempt = { ...subjectOf(node, plan, hash), ...defined({ from }), ...times };
  return annotated(node, { [names.attemptKeyOf(plan.metadata)]: JSON.stringify(record) });
}

/** Returns the Node with the record of its upgrade in place of the record of its attempt. `ended` and `began` are in RFC 3339. */
export function withUpgrade(
  node: Node,
  plan: CattlePlan,
  {
    hash,
    version: to,
    ended,
    began,
  }: Record<'hash' | 'version' | 'ended', string> & {
    readonly began: string | undefined;
  },
): Node {
  const { since, from } = attemptOn(node, plan, hash) ?? {};
  const record: Upgrade = {
    ...subjectOf(node, plan, hash),
    version: to,
    ...defined({ from, begun: since ?? began }),
    ended,
  };
  const text = JSON.stringify(record);
  const left = withoutFormerUpgrade(withoutAttempt(node, plan), plan);
  return annotated(left, { [names.upgradeKeyOf(plan.metadata)]: text });
}

/** Returns the Node without the upgrade that an earlier build of Refit recorded for this Plan; the same Node if it has none. */
function withoutFormerUpgrade(node: Node, plan: CattlePlan): Node {
  const [, former] = keysOf(names.upgradeKeyOf, plan);
  return isInNamespace(upgradeIn(node, former), plan) ? withoutAnnotations(node, former) : node;
}

/**
 * Returns true if the record is about a Plan in the namespace of `plan`. The key of a record of an earlier build does not name
 * the namespace, so such a record may be about a Plan of another namespace.
 */
function isInNamespace(record: Subject | undefined, { metadata }: CattlePlan): boolean {
  return record?.plan.startsWith(`${metadata.namespace ?? ''}/`) === true;
}

/** Returns the Node without the record of an attempt of the Plan; the same Node if it has none. */
export function withoutAttempt(node: Node, plan: CattlePlan): Node {
  const [key, former] = keysOf(names.attemptKeyOf, plan);
  const left = [key, ...(isInNamespace(attemptIn(node, former), plan) ? [former] : [])].filter(
    (each) => ownMember(node.metadata.annotations, each) !== undefined,
  );
  return left.length === 0 ? node : withoutAnnotations(node, ...left);
}

/** Returns the key of a record, and then the key that earlier builds of Refit used, which does not name the namespace. */
function keysOf(keyOf: typeof names.attemptKeyOf, { metadata }: CattlePlan): [string, string] {
  return [keyOf(metadata), keyOf({ name: metadata.name })];
}

/**
 * Returns the Node without the records of deleted Plans in the namespace of `plan`, so that the records on a Node never become
 * many. Returns the same Node if it has no such record.
 */
export function withoutOldRecords(node: Node, { metadata }: CattlePlan, world: World): Node {
  const { annotations = {} } = node.metadata;
  const { namespace = '' } = metadata;
  const isOld = (key: string): boolean => {
    const of = names.planOfRecord(key);
    if (of === undefined || of.name === metadata.name) return false;
    if (world.get(cattlePlans, of.name, namespace)) return false;
    if (of.namespace !== undefined) return of.namespace === namespace;
    const record = attemptIn(node, key) ?? upgradeIn(node, key);
    return record?.plan.startsWith(`${namespace}/`) === true;
  };
  const old = Object.keys(annotations).filter(isOld);
  return old.length === 0 ? node : withoutAnnotations(node, ...old);
}

function subjectOf(node: KubeObject, plan: CattlePlan, hash: string): Subject {
  const { namespace = '', uid = '' } = plan.metadata;
  return { plan: `${namespace}/${uid}`, node: node.metadata.uid ?? '', hash };
}

function isAbout(record: Subject, { plan, node, hash }: Subject): boolean {
  return record.plan === plan && record.node === node && record.hash === hash;
}
