/** Owns which versions a plan may lead through: no minor version skipped, nothing lowered, no kubelet newer than an API server. */
import { compareVersions, parseVersion, type Version } from '../../util/version.ts';
import type { ApiServerVersion } from '../model/observed.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Role } from '../model/recorded.ts';
import type { VersionRule } from './rollout-policy.ts';

/** A stage that changes the version of its targets; in the order in which the plan runs them. */
export interface VersionStage {
  readonly role: Role;
  /** What every target has afterwards. */
  readonly version: string;
  /** Bound by no rule. */
  readonly forced: boolean;
  readonly targets: readonly VersionTarget[];
}

export interface VersionTarget {
  /** Unique among all targets of its role. */
  readonly name: string;
  /** Before the plan; undefined where nobody told. */
  readonly current?: string | undefined;
  /** A controller that runs a kubelet too; every worker does. */
  readonly hasKubelet?: boolean | undefined;
}

export interface VersionVerdict {
  /** One reason for each rule and pair of versions, with the names of the targets. */
  readonly problems: readonly Reason[];
  /** Sentences on what could not be judged because a version is not known or not readable; such targets pass. */
  readonly unchecked: readonly string[];
}

/** Names that are told one by one. */
const MAX_TOLD = 5;

/** Follows the plan from stage to stage: each is judged by what the ones before it leave behind. */
export function judgeVersions(
  stages: readonly VersionStage[],
  apiServers: readonly ApiServerVersion[],
  allow: ReadonlySet<VersionRule>,
): VersionVerdict {
  const servers = new Map(apiServers.map(({ name, version }) => [name, version]));
  const moved = new Map<string, string>();
  const findings = new Findings();
  for (const stage of stages) {
    const { role, version, targets } = stage;
    // While controllers move, one kubelet is ahead of the rest for as long as that takes: what counts is how they end.
    if (role === 'controller') for (const { name } of targets) servers.set(name, version);
    if (!stage.forced) judgeStage(stage, moved, servers, allow, findings);
    for (const { name } of targets) moved.set(keyOf(role, name), version);
  }
  return { problems: findings.problems(), unchecked: findings.unchecked() };
}

function judgeStage(
  { role, version, targets }: VersionStage,
  moved: ReadonlyMap<string, string>,
  servers: ReadonlyMap<string, string | undefined>,
  allow: ReadonlySet<VersionRule>,
  findings: Findings,
): void {
  const wanted = parseVersion(version);
  if (!wanted) return findings.leave(`${version} cannot be compared with other versions`);
  for (const { name, current } of targets) {
    const text = moved.get(keyOf(role, name)) ?? current;
    const from = text === undefined ? undefined : parseVersion(text);
    if (text === undefined || !from) {
      findings.leave(text === undefined ? 'the version is not known' : `${text} cannot be read as a version`, name);
      continue;
    }
    const rule = ruleAgainst(from, wanted);
    if (rule && !allow.has(rule)) findings.add(rule, `would go from ${text} ${wayOf(from, wanted)} ${version}`, name);
  }
  const kubelets = targets.filter(({ hasKubelet = role === 'worker' }) => hasKubelet);
  if (kubelets.length === 0 || allow.has('KubeletAhead')) return;
  const behind = [...servers].filter(([, server]) => isBehind(server, wanted)).map(([name, at]) => `${name} (${at})`);
  const what = `would have a kubelet of ${version}, newer than the API server of ${listed(behind)}`;
  if (behind.length > 0) for (const { name } of kubelets) findings.add('KubeletAhead', what, name);
  for (const [name, server = ''] of servers)
    if (!parseVersion(server)) findings.leave('the version of the API server is not known', name);
}

function ruleAgainst(from: Version, wanted: Version): 'Downgrade' | 'SkippedMinor' | undefined {
  if (compareVersions(...alike(wanted, from)) < 0) return 'Downgrade';
  return wanted.major > from.major || wanted.minor > from.minor + 1 ? 'SkippedMinor' : undefined;
}

/** `down to`, `past 1.35 to`: what lies between the two versions in the sentence about them. */
function wayOf(from: Version, wanted: Version): string {
  if (wanted.major > from.major) return 'past the rest of its major version to';
  const count = Math.max(0, wanted.minor - from.minor - 1);
  const between = Array.from({ length: count }, (_, index) => `${from.major}.${from.minor + 1 + index}`);
  return count > 0 ? `past ${between.join(', ')} to` : 'down to';
}

/** Kubernetes lets the two differ in their patch, but no kubelet be of a newer minor version. */
function isBehind(server: string | undefined, kubelet: Version): boolean {
  const at = server === undefined ? undefined : parseVersion(server);
  return at !== undefined && (at.major < kubelet.major || (at.major === kubelet.major && at.minor < kubelet.minor));
}

/** A kubelet tells less of its build than the file it came from: what only one of two tells makes no difference. */
function alike(a: Version, b: Version): [Version, Version] {
  const tellsLess = (one: Version, other: Version): boolean =>
    one.build === '' || other.build.startsWith(`${one.build}.`);
  return tellsLess(a, b) || tellsLess(b, a)
    ? [
        { ...a, build: '' },
        { ...b, build: '' },
      ]
    : [a, b];
}

function keyOf(role: Role, name: string): string {
  return `${role}/${name}`;
}

/** What was found, by what is said of it: a fleet that breaks one rule in one way is one sentence. */
class Findings {
  readonly #broken = new Map<string, { readonly rule: VersionRule; readonly what: string; readonly names: string[] }>();
  readonly #left = new Map<string, string[]>();

  add(rule: VersionRule, what: string, name: string): void {
    const key = `${rule} ${what}`;
    const known = this.#broken.get(key) ?? { rule, what, names: [] };
    known.names.push(name);
    this.#broken.set(key, known);
  }

  /** Without a name: it is so for all. */
  leave(what: string, ...names: readonly string[]): void {
    const known = this.#left.get(what) ?? [];
    known.push(...names);
    this.#left.set(what, known);
  }

  problems(): Reason[] {
    return [...this.#broken.values()].map(({ rule, what, names }) =>
      because(rule, `${listed(names)} ${what} (rule ${rule})`),
    );
  }

  unchecked(): string[] {
    return [...this.#left].map(([what, names]) =>
      [listed([...new Set(names)]), what].filter((part) => part !== '').join(': '),
    );
  }
}

function listed(names: readonly string[]): string {
  const told = names.slice(0, MAX_TOLD);
  return [...told, ...(names.length > told.length ? [`${names.length - told.length} more`] : [])].join(', ');
}
