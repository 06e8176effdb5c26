/**
 * Judges versions. R1 to R14 are the version skew policy of Kubernetes; Km, Ks and Kd are rules of
 * kubeadm (docs/guides/kubeadm/rules.md).
 */
import {
  compareVersions,
  isNewerMinor,
  minorsBetween,
  parseVersion,
  type Version,
} from '../util/version.ts';
import { THREE_BEHIND_FROM } from './data/by-hand.ts';
import { NEWEST_KNOWN } from './facts.ts';
import { type Finding, force, hard, warn } from './findings.ts';
import {
  brokenStep,
  type ControllerManagerFacts,
  etcdFindings,
  type KubeletFacts,
  kubeadmFindings,
  nodeFindings,
  textOf,
  type VersionFacts,
} from './kubeadm-rules.ts';

/** Returns everything that breaks a rule, in the order of the rules. Rules about absent facts are skipped. */
export function judgeVersions(facts: VersionFacts): Finding[] {
  const isReadable = ({ version }: { readonly version: string }): boolean =>
    parseVersion(version) !== undefined;
  // A version that cannot be read has its own finding, and the rest is still judged.
  const kubelets = (facts.kubelets ?? []).filter(isReadable);
  const controllers = (facts.controllers ?? []).filter(isReadable);
  const servers = facts.apiServers.flatMap((text) => parseVersion(text) ?? []);
  const target = parseVersion(facts.target);
  return [
    ...unreadableFindings(facts),
    ...(target ? targetFindings(servers, target, facts) : spreadFindings(servers)),
    ...kubelets.flatMap((kubelet) => [...kubeletFindings(kubelet, servers, target)]),
    ...controllers.flatMap((controller) => controllerFindings(controller, servers, target)),
    ...kubeadmFindings(facts),
    ...etcdFindings(facts.etcd),
    ...nodeFindings(facts.node, target),
  ];
}

/**
 * Returns findings for versions that cannot be read. A kubelet that keeps its version, such as the kubelet of a virtual
 * Node, only causes a warning. All other versions must be known.
 */
function unreadableFindings(facts: VersionFacts): Finding[] {
  const { apiServers, target, kubelets = [], controllers = [] } = facts;
  const isUnreadable = (text: string): boolean => parseVersion(text) === undefined;
  const needed = [
    ...apiServers,
    ...(target === undefined ? [] : [target]),
    ...controllers.map(({ version }) => version),
  ].filter(isUnreadable);
  const told = kubelets.filter(({ version }) => isUnreadable(version));
  return [
    ...(needed.length > 0 ? [hard('Km1', `${needed.join(', ')} is not a version`)] : []),
    ...told.map(({ name, version, target: next }) => {
      const who = name === undefined ? 'kubelet' : `kubelet of ${name}`;
      const found =
        version === '' ? `${who} reports no version` : `${who}: "${version}" is not a version`;
      return next === undefined
        ? warn('Km1', `${found}, so no rule of versions is checked for it`)
        : hard('Km1', found);
    }),
  ];
}

/**
 * Returns false if everything has the target version already, with the same build suffix. It throws
 * a RangeError for a text that is not a version.
 */
export function isNeeded(found: readonly string[], target: string): boolean {
  return found.some((version) => compareVersions(read(version), read(target)) !== 0);
}

function* targetFindings(
  servers: readonly Version[],
  target: Version,
  facts: VersionFacts,
): Iterable<Finding> {
  const [oldest, newest] = ends(servers);
  const unknown = `${textOf(target)} is newer than this Refit, which does not know its rules`;
  if (target.major !== 1) yield hard('R14', unknown);
  else if (target.minor > NEWEST_KNOWN) yield force('R14', unknown);
  if (facts.oldestMaintained !== undefined && target.minor < facts.oldestMaintained)
    yield warn(
      'R14',
      `${textOf(target)} is older than the three newest minor versions that this Refit knows: it may not be maintained any more`,
    );
  if (target.pre !== '') yield force('Ks3', `${textOf(target)} is a pre-release`);
  if (!oldest || !newest) return;
  yield* spreadFindings(servers);
  if (minorsBetween(oldest, target).length > 0)
    yield hard('R2', `API servers ${goes(oldest, target)}`);
  const uneven = `all API servers must be at 1.${target.minor - 1} before 1.${target.minor}; found ${textOf(oldest)} and ${textOf(newest)}`;
  if (target.minor > newest.minor && newest.minor !== oldest.minor) yield hard('R8', uneven);
  if (target.minor < newest.minor) yield hard('R12', `API servers ${goes(newest, target)}`);
  else if (compareVersions(target, newest) < 0 && facts.goesBack !== true)
    yield force('R12', `API servers ${goes(newest, target)}`);
  const differ = `API servers have different versions, from ${textOf(oldest)} to ${textOf(newest)}, and no upgrade of this plan is in progress`;
  if (compareVersions(oldest, newest) !== 0 && facts.resuming !== true) yield force('F7', differ);
}

function spreadFindings(servers: readonly Version[]): Finding[] {
  const [oldest, newest] = ends(servers);
  if (!oldest || !newest || newest.minor - oldest.minor <= 1) return [];
  return [
    hard(
      'R1',
      `API servers may be one minor version apart, found ${textOf(oldest)} and ${textOf(newest)}`,
    ),
  ];
}

function* kubeletFindings(
  facts: KubeletFacts,
  servers: readonly Version[],
  target?: Version,
): Iterable<Finding> {
  const { name } = facts;
  const who = name === undefined ? 'kubelet' : `kubelet of ${name}`;
  const now = read(facts.version);
  const next = facts.target === undefined ? undefined : read(facts.target);
  const local = facts.apiServer === undefined ? servers : [read(facts.apiServer)];
  // API servers are upgraded before the kubelet, so the new kubelet will connect to API servers of the target version.
  const met = target ? [target] : local;
  yield* next ? skewFindings(who, next, met) : skewFindings(who, now, local);
  if (next) yield* moveFindings(who, now, next, facts);
  if (next && met.some((server) => isNewerMinor(next, server)))
    yield hard('R7', `API servers must have ${textOf(next)} before ${who} can have it`);
  // The code above has already judged the present skew of a kubelet that keeps its version.
  if (target && facts.goesBack !== true) yield* stepFindings(who, now, next ? local : [], target);
  const blocks = `${who} at ${textOf(now)} is three minor versions behind and blocks the next upgrade of the control plane`;
  if (!target && !next && local.some((server) => server.minor - now.minor === 3))
    yield warn('R10', blocks);
}

/** Returns findings about the time after the upgrade of the API servers, when the kubelet still has the version `now`. */
function stepFindings(
  who: string,
  now: Version,
  servers: readonly Version[],
  target: Version,
): Finding[] {
  const behind = target.minor - now.minor;
  const found = `${who} at ${textOf(now)}`;
  const [oldest] = ends(servers);
  const isEnded = compareVersions(now, target) <= 0;
  if (oldest && now.minor > oldest.minor && isEnded)
    return [
      warn(
        'R3',
        `${found} is newer than an API server at ${textOf(oldest)}, until this upgrade brings that API server to ${textOf(target)}`,
      ),
    ];
  if (oldest && now.minor > oldest.minor)
    return [hard('R3', `${found} is newer than an API server at ${textOf(oldest)}`)];
  if (now.minor > target.minor || (now.minor === target.minor && now.patch > target.patch))
    return [hard('R3', `${found} would be newer than the API servers at ${textOf(target)}`)];
  if (behind > allowedBehind(now))
    return [
      hard(
        'R10',
        `${found} would be ${behind} minor versions behind ${textOf(target)} (R3)`,
        'upgrade it first',
      ),
    ];
  return behind === 3
    ? [warn('R8', `${found} will be three minor versions behind ${textOf(target)}`)]
    : [];
}

function* moveFindings(
  who: string,
  now: Version,
  next: Version,
  how: KubeletFacts,
): Iterable<Finding> {
  if (how.replaced || now.minor === next.minor) return;
  if (how.drained !== true)
    yield hard('R9', `the node of ${who} must be drained before its minor version changes`);
  if (how.skips !== true && minorsBetween(now, next).length > 0)
    yield hard(
      'R13',
      `${who} ${goes(now, next)}: on the same host, kubeadm moves one minor version at a time (Kd)`,
    );
  if (isNewerMinor(now, next)) yield force('R12', `${who} ${goes(now, next)}`);
}

/**
 * Checks that a kubelet is not newer than the oldest API server, and not too many minor versions older than the newest
 * API server.
 */
function skewFindings(who: string, version: Version, servers: readonly Version[]): Finding[] {
  const [oldest, newest] = ends(servers);
  if (!oldest || !newest) return [];
  const found = `${who} at ${textOf(version)}`;
  if (isNewerMinor(version, oldest))
    return [hard('R3', `${found} is newer than an API server at ${textOf(oldest)}`)];
  const limit = allowedBehind(version);
  if (newest.minor - version.minor > limit)
    return [
      hard(
        'R3',
        `${found} is more than ${limit} minor versions behind an API server at ${textOf(newest)}`,
      ),
    ];
  if (compareVersions(version, oldest) <= 0) return [];
  return [warn('R3', `${found} has a newer patch than an API server at ${textOf(oldest)}`)];
}

function controllerFindings(
  facts: ControllerManagerFacts,
  servers: readonly Version[],
  target?: Version,
): Finding[] {
  const version = read(facts.version);
  const [oldest, newest] = ends(facts.apiServer === undefined ? servers : [read(facts.apiServer)]);
  if (!oldest || !newest) return [];
  const who = `${facts.name} at ${textOf(version)}`;
  if (isNewerMinor(version, oldest))
    return [hard('R5', `${who} is newer than an API server at ${textOf(oldest)}`)];
  if (newest.minor - version.minor > 1)
    return [
      hard('R5', `${who} is more than one minor version behind an API server at ${textOf(newest)}`),
    ];
  if (target && target.minor - version.minor > 1)
    return [
      hard(
        'R8',
        `${who} must be at 1.${target.minor - 1} before API servers go to ${textOf(target)}`,
      ),
    ];
  return [];
}

/**
 * Returns false if the API servers cannot get this version before the kubelet is upgraded, or if a
 * version cannot be read.
 */
export function canStay(kubelet: string | undefined, servers: string): boolean {
  const now = parseVersion(kubelet);
  const next = parseVersion(servers);
  return now !== undefined && next !== undefined && next.minor - now.minor <= allowedBehind(now);
}

export function allowedBehind({ minor }: Version): number {
  return minor < THREE_BEHIND_FROM ? 2 : 3;
}

function ends(versions: readonly Version[]): readonly [Version | undefined, Version | undefined] {
  const sorted = versions.toSorted(compareVersions);
  return [sorted[0], sorted.at(-1)];
}

function read(version: string): Version {
  const parsed = parseVersion(version);
  if (!parsed) throw new RangeError(`${version} is not a version`);
  return parsed;
}

function goes(from: Version, to: Version): string | undefined {
  return brokenStep(from, to)?.message;
}
