/**
 * Determines the latest version and the hash of a Plan. If the Plan has problems, returns them in the words of the
 * original controller.
 */
import { hash } from 'node:crypto';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { because, type Reason } from '../../../engine/model/reasons.ts';
import type { Secret } from '../../../kube/resources.ts';
import { selectorFault } from '../../../kube/selectors.ts';
import type { ConditionUpdate } from '../../../runtime/conditions.ts';
import { faultOfGoDuration, formatGoDuration, parseGoDuration } from '../../../util/duration.ts';
import { escapeLikeGo, isRecord, stableStringify } from '../../../util/json.ts';
import { ownMember } from '../../../util/own-member.ts';
import { conditionOf, RESOLVED_TYPE, says } from './conditions.ts';
import { fieldProblems } from './field-problems.ts';
import { DIGEST_ANNOTATION, expandedLabels, hashLabelOf, mungeVersion } from './names.ts';
import { isZero } from './stamps.ts';
import { windowsOf } from './window.ts';

export function hashedSecrets({ spec }: CattlePlan): string[] {
  return (spec?.secrets ?? [])
    .filter(({ ignoreUpdates }) => ignoreUpdates !== true)
    .map(({ name }) => name);
}

/**
 * Returns the hash of a Plan at a version: 56 hexadecimal digits. `secrets` are the Secrets whose names `hashedSecrets`
 * returns, in the same order.
 */
export function latestHash(plan: CattlePlan, version: string, secrets: readonly Secret[]): string {
  const paths = plan.metadata.annotations?.[DIGEST_ANNOTATION];
  const digest = paths ? digestOf(plan, paths) : '';
  const parts = [version, plan.spec?.serviceAccountName ?? '', digest, ...secrets.map(secretHash)];
  return hash('sha224', parts.join(''));
}

/** The letters with which kubectl replaces these characters in a hash, so that the hash contains no word by chance. */
const LETTERS: Readonly<Record<string, string>> = { '0': 'g', '1': 'h', '3': 'k', a: 'm', e: 't' };

/** Returns ten characters from the content and name of a Secret, as kubectl computes them for generated Secrets. */
export function secretHash({ metadata, type = '', data, immutable }: Secret): string {
  const content = { data: data ?? null, immutable, kind: 'Secret', name: metadata.name, type };
  const hex = hash('sha256', escapeLikeGo(stableStringify(content)));
  return hex.slice(0, 10).replaceAll(/[013ae]/g, (digit) => ownMember(LETTERS, digit) ?? digit);
}

/**
 * Returns the text of the fields that the digest annotation lists. `paths` are separated by commas. A path cannot
 * address the items of a list. Spaces around a path are not trimmed.
 */
export function digestOf(plan: CattlePlan, paths: string): string {
  const root = { ...plan, spec: asWritten(plan.spec ?? {}, 'spec') };
  const texts = paths.split(',').map((path) => {
    const value = valueAt(root, path.split('.'));
    const first: unknown = Array.isArray(value) ? value[0] : value;
    return print(first ?? '').trim();
  });
  return texts.join('');
}

/** Returns the value at the path; undefined if there is no value. */
function valueAt(root: unknown, path: readonly string[]): unknown {
  let at = root;
  for (const key of path) at = isRecord(at) ? ownMember(at, key) : undefined;
  return at;
}

/**
 * Returns the paths in the digest annotation that name no field of the Plan. Adding or removing such a path does not
 * change the hash.
 */
export function unknownDigestPaths(plan: CattlePlan): string[] {
  const paths = plan.metadata.annotations?.[DIGEST_ANNOTATION] ?? '';
  return paths === '' ? [] : paths.split(',').filter((path) => digestOf(plan, path) === '');
}

/** Prints a value as Go does, for example `map[a:1 b:[x y]]`. */
function print(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(print).join(' ')}]`;
  if (value === null) return '<nil>';
  if (!isRecord(value)) return typeof value === 'string' ? value : JSON.stringify(value);
  const members = Object.entries(value).toSorted(([a], [b]) =>
    Buffer.compare(Buffer.from(a), Buffer.from(b)),
  );
  return `map[${members.map(([key, member]) => `${key}:${print(member)}`).join(' ')}]`;
}

/** The names of the fields that are pointers in Go. Go omits a zero value, but not if the field is a pointer to it. */
const POINTERS = new Set(
  [
    'jobActiveDeadlineSecs timeout gracePeriod deleteLocalData deleteEmptydirData ignoreDaemonSets',
    'nodeSelector podSelector drain prepare upgrade window securityContext defaultMode optional privileged',
    'runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation tolerationSeconds',
  ].flatMap((line) => line.split(' ')),
);
/** The names of the fields that are maps with keys from the user. The members of these maps are not changed. */
const MAPS = new Set(['matchLabels', 'postCompleteLabels']);

/**
 * Returns the value in the form that Go would write: without zero values, and with durations such
 * as `1h0m0s`.
 */
function asWritten(value: unknown, name: string): unknown {
  if (name === 'postCompleteDelay' && typeof value === 'string') {
    const nanoseconds = parseGoDuration(value);
    return nanoseconds === undefined ? value : formatGoDuration(nanoseconds);
  }
  if (Array.isArray(value)) return value.map((item) => asWritten(item, ''));
  if (!isRecord(value) || MAPS.has(name)) return value;
  const members = Object.entries(value).map(([key, member]): [string, unknown] => [
    key,
    asWritten(member, key),
  ]);
  return Object.fromEntries(
    members.filter(([key, member]) => POINTERS.has(key) || !isZero(member)),
  );
}

function waitingFor(plan: CattlePlan): string {
  const { message = '' } = conditionOf(plan, RESOLVED_TYPE) ?? {};
  const waiting = 'waiting for the version of the channel';
  return message === '' ? waiting : `${waiting}: ${message}`;
}

export interface Latest {
  /** The version as a label value. If the plan has problems, `version` and `hash` are the values in its status. */
  readonly version: string;
  readonly hash: string;
  readonly problems: readonly Reason[];
}

/**
 * Returns the Secret with the name; undefined if it does not exist. A command that cannot read Secrets passes no such function,
 * and uses the recorded hash.
 */
export type SecretLookup = (name: string) => Secret | undefined;

export function resolveLatest(plan: CattlePlan, secretOf: SecretLookup | undefined): Latest {
  const { latestVersion = '', latestHash: recordedHash = '' } = plan.status ?? {};
  const recorded = { version: latestVersion, hash: recordedHash };
  const secrets = hashedSecrets(plan).map((name) => ({ name, secret: secretOf?.(name) }));
  const absent = secretOf ? secrets.filter(({ secret }) => !secret) : [];
  const fault =
    faultOf(plan) ??
    recordedFault(plan, secretOf) ??
    absent.map(({ name }) => absenceOf(name)).join(', ');
  if (fault !== '') return { ...recorded, problems: [because('InvalidPlan', fault)] };
  const latest = latestOf(plan, recorded, secrets);
  const wrong = fieldProblems(plan).map((each) => because('InvalidPlan', each));
  if (wrong.length === 0) return latest;
  // The original accepts this Plan. Scripts wait until its version is known, so the version is recorded as in the
  // original, unless a node still has a slot for the recorded version.
  const isAtWork = (plan.status?.applying ?? []).length > 0;
  const { version, hash } = isAtWork ? recorded : latest;
  const others = latest.problems.filter(({ code }) => code === 'InvalidPlan');
  return { version, hash, problems: [...wrong, ...others] };
}

type Recorded = Pick<Latest, 'version' | 'hash'>;

interface NamedSecret {
  readonly name: string;
  readonly secret: Secret | undefined;
}

function latestOf(plan: CattlePlan, recorded: Recorded, secrets: readonly NamedSecret[]): Latest {
  const version = versionOf(plan);
  if (version === undefined) {
    const problem = plan.spec?.channel
      ? because('ChannelUnanswered', waitingFor(plan))
      : because('VersionUnknown', NEITHER);
    return { ...recorded, problems: [problem] };
  }
  const invalid = version === '' ? 'it is empty' : selectorFault({ matchLabels: { version } });
  if (invalid !== undefined)
    return {
      ...recorded,
      problems: [
        because('InvalidPlan', `the version is invalid, ${invalid}${aboutDigest(version)}`),
      ],
    };
  const found = secrets.flatMap(({ secret }) => secret ?? []);
  const hash = found.length === secrets.length ? latestHash(plan, version, found) : recorded.hash;
  return { version, hash, problems: [] };
}

/** Advises the author of a version with a digest. The version becomes a label of the Jobs, and a digest is too long for a label. */
function aboutDigest(version: string): string {
  return version.includes('@')
    ? `; write the digest behind the name of the image in spec.upgrade.image, and only the tag into the version; with the annotation ${DIGEST_ANNOTATION}: spec.upgrade.image, each new digest starts the Plan again`
    : '';
}

/**
 * The most characters of a selector. The length is limited because each reconcile matches the selector against each
 * Node.
 */
const LONGEST_SELECTOR = 2 ** 16;

function lengthFault(selector: unknown): string | undefined {
  const { length } = JSON.stringify(selector ?? {});
  return length > LONGEST_SELECTOR
    ? `${length} is too many characters; use at most ${LONGEST_SELECTOR}`
    : undefined;
}

const SOME_HASH = '0'.repeat(56);

/** Returns the first problem, checked in the order of the original; undefined if there is none. */
function faultOf(plan: CattlePlan): string | undefined {
  const { metadata, spec } = plan;
  const { drain, window, postCompleteDelay, postCompleteLabels, nodeSelector } = spec ?? {};
  if (drain?.deleteEmptydirData !== undefined && drain.deleteLocalData !== undefined)
    return 'spec.drain cannot specify both deleteEmptydirData and deleteLocalData';
  const selectors = {
    'metadata.name': { matchLabels: { [hashLabelOf(metadata.name)]: metadata.name } },
    'spec.drain.podSelector': drain?.podSelector,
    'spec.nodeSelector': nodeSelector,
    'spec.postCompleteLabels': {
      matchLabels: expandedLabels(postCompleteLabels, versionOf(plan) ?? 'v', SOME_HASH),
    },
  };
  for (const [field, selector] of Object.entries(selectors)) {
    const fault = lengthFault(selector) ?? selectorFault(selector);
    if (fault !== undefined) return `${field} is invalid, ${fault}`;
  }
  const windows = window && windowsOf(window);
  if (typeof windows === 'string') return `spec.window is invalid, ${windows}`;
  if (postCompleteDelay === undefined) return undefined;
  const delay = parseGoDuration(postCompleteDelay);
  if (delay === undefined)
    return `spec.postCompleteDelay is invalid, "${postCompleteDelay}" ${faultOfGoDuration(postCompleteDelay)}; use for example 90s or 1h30m`;
  return delay < 0 ? 'spec.postCompleteDelay is negative' : undefined;
}

/**
 * Returns the problem that the leader recorded about missing Secrets. Leaves out Secrets that the Plan no longer names.
 * Returns undefined if there is no such problem, or if this process can read Secrets itself.
 */
function recordedFault(plan: CattlePlan, secretOf: SecretLookup | undefined): string | undefined {
  const { status, message = '' } = conditionOf(plan, 'Validated') ?? {};
  if (secretOf !== undefined || status !== 'False') return undefined;
  const still = hashedSecrets(plan).flatMap((name) => recordedOf(name, message) ?? []);
  return still.length > 0 ? still.join(', ') : undefined;
}

/**
 * Returns the part of the message that is about the Secret. The part begins with the name of the Secret and ends before
 * the next Secret or at the end of the message. The original controller also records other faults of a Secret, such as
 * a missing right.
 */
function recordedOf(secret: string, message: string): string | undefined {
  return message.split(/, (?=secrets ")/).find((each) => each.startsWith(`secrets "${secret}" `));
}

function absenceOf(secret: string): string {
  return `secrets "${secret}" not found`;
}

function versionOf(plan: CattlePlan): string | undefined {
  const { version = '', channel = '' } = plan.spec ?? {};
  if (version !== '') return mungeVersion(version);
  const { status, reason } = conditionOf(plan, RESOLVED_TYPE) ?? {};
  return channel !== '' && status === 'True' && reason === 'Channel'
    ? plan.status?.latestVersion
    : undefined;
}

const NEITHER = 'cannot resolve plan: missing channel and version';

/**
 * Returns the conditions for the problems. The channel controller writes `LatestResolved` of a Plan with a channel. If
 * Refit refuses a Plan that the original accepts, the version of the Plan is resolved all the same.
 */
export function conditionsOf(plan: CattlePlan, problems: readonly Reason[]): ConditionUpdate[] {
  const invalid = problems.filter(({ code }) => code === 'InvalidPlan');
  const type = 'Validated';
  if (invalid.length === 0)
    return [{ type, status: 'True', reason: 'PlanIsValid', message: '' }, ...resolutionOf(plan)];
  const message = invalid.map((each) => each.message).join('. ');
  const refused = { type, status: 'False', reason: 'Error', message } as const;
  const accepted = fieldProblems(plan);
  const isAccepted = invalid.every((each) => accepted.includes(each.message));
  return isAccepted ? [refused, ...resolutionOf(plan)] : [refused];
}

function resolutionOf({ spec }: CattlePlan): ConditionUpdate[] {
  const type = RESOLVED_TYPE;
  if (spec?.version) return [{ type, status: 'True', reason: 'Version', message: '' }];
  return spec?.channel ? [] : [{ type, status: 'False', reason: 'Error', message: NEITHER }];
}

export const NOT_READY: ConditionUpdate = {
  type: 'Complete',
  status: 'False',
  reason: 'NotReady',
  message: 'plan is not valid and resolved',
};

export function isRecorded(plan: CattlePlan, { version, hash, problems }: Latest): boolean {
  const { latestVersion = '', latestHash: recordedHash = '' } = plan.status ?? {};
  const wanted = [...conditionsOf(plan, problems), ...(problems.length > 0 ? [NOT_READY] : [])];
  return (
    latestVersion === version &&
    recordedHash === hash &&
    wanted.every((verdict) => says(plan, verdict))
  );
}
