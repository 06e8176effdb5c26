/**
 * Judges the versions to which a plan takes the nodes. A plan must not skip a minor version, must not downgrade, and
 * must not make a kubelet newer than an API server.
 */
import { listed } from '../util/phrases.ts';
import { isNewerMinor, parseVersion } from '../util/version.ts';
import { brokenStep } from './kubeadm-rules.ts';
import { equallyPrecise } from './release-parts.ts';

/** The rules of every plan. A policy may lift them by name. */
export const VERSION_RULES = ['SkippedMinor', 'Downgrade', 'KubeletAhead'] as const;

/** `KubeletBehind` is only checked for distributions that support fewer minor versions than Kubernetes. */
export type VersionRule = (typeof VERSION_RULES)[number] | 'KubeletBehind';

/** Targets that get the same version. */
export interface VersionStage {
  readonly role: 'controller' | 'worker';
  readonly version: string;
  /** If true, no rule applies to the stage. */
  readonly forced: boolean;
  readonly targets: readonly VersionTarget[];
}

export interface VersionTarget {
  /** The name is unique among all targets of its role. */
  readonly name: string;
  /** The version before the plan; undefined if it is unknown. */
  readonly current?: string | undefined;
  /** True for a controller that also runs a kubelet. Every worker runs a kubelet. */
  readonly hasKubelet?: boolean | undefined;
  /** True if a record proves that the target ran this version before, so that a downgrade to this version is allowed. */
  readonly goesBack?: boolean | undefined;
  /** The reason why Refit treats the Node as virtual, for messages. No rule applies to such a target. */
  readonly virtual?: string | undefined;
}

/** A broken rule. */
export interface VersionProblem {
  readonly code: VersionRule;
  readonly message: string;
  /** The version that the rule refuses: a plan that asks for another version may follow the rule. */
  readonly details: { readonly versions: readonly [string] };
}

/** The result of `judgePlan`. */
export interface VersionVerdict {
  /**
   * The broken rules. There is one entry for each rule and pair of versions, with the names of the
   * targets.
   */
  readonly problems: readonly VersionProblem[];
  /**
   * The checks that were not made, because a version is unknown or unreadable, or a Node is virtual. A target without a
   * check breaks no rule.
   */
  readonly unchecked: readonly string[];
}

export interface ApiServer {
  /** The name of the controller, which is unique. */
  readonly name: string;
  /** The version of the API server; undefined if it is unknown. */
  readonly version?: string | undefined;
  /** True if the kubelet of the Node with this name is a part of the same process, so that both always have one version. */
  readonly isOfKubelet?: boolean;
}
type AllowedRules = ReadonlySet<VersionRule>;
type RemedyOf = (rule: VersionRule) => string;

/** Says how the author of a policy can lift the rule. */
export function policyRemedy(rule: VersionRule): string {
  return `; versions.allow: [${rule}] of an UpgradePolicy allows it`;
}

/** Judges each stage. It starts from the versions that the nodes have after all earlier stages. */
export function judgePlan(
  stages: readonly VersionStage[],
  apiServers: readonly ApiServer[],
  allow: AllowedRules,
  /**
   * Returns how users can lift a rule. It returns an empty text if the caller explains that itself.
   */
  remedyOf: RemedyOf = policyRemedy,
) {
  const servers = new Map(apiServers.map(({ name, version }) => [name, version]));
  const moved = new Map<string, string>();
  const findings = planFindings();
  for (const stage of stages) {
    const { role, version, targets } = stage;
    if (role === 'controller' && !stage.forced && !allow.has('KubeletAhead'))
      judgeLeftAhead(stage, { stages, moved, servers }, findings);
    // While controllers are upgraded, the kubelet of a controller may be newer than the API servers of other
    // controllers. The rule applies only to the end of the stage.
    if (role === 'controller') for (const { name } of targets) servers.set(name, version);
    if (!stage.forced) judgeStage(stage, moved, servers, allow, findings);
    for (const { name } of targets) moved.set(keyOf(role, name), version);
  }
  return findings.verdict(remedyOf);
}

/** Returns the reason why the API server must not go to the version: a kubelet would be newer. Undefined if none would be. */
export function kubeletsLeftAhead(
  { name, version }: { readonly name: string; readonly version: string },
  kubelets: readonly ApiServer[],
  allow: AllowedRules,
): VersionProblem | undefined {
  const wanted = parseVersion(version);
  if (!wanted || allow.has('KubeletAhead')) return undefined;
  const findings = planFindings();
  for (const kubelet of kubelets) {
    const at = parseVersion(kubelet.version);
    if (at && isNewerMinor(at, wanted))
      findings.add(
        'KubeletAhead',
        `would still have a kubelet of ${kubelet.version} when the API server of ${name} has ${version}: kubelets must go back first`,
        { name: kubelet.name, refused: version },
      );
  }
  return findings.verdict(policyRemedy).problems[0];
}

function judgeStage(
  { role, version, targets }: VersionStage,
  moved: ReadonlyMap<string, string>,
  servers: ReadonlyMap<string, string | undefined>,
  allow: AllowedRules,
  findings: PlanFindings,
): void {
  const wanted = parseVersion(version);
  if (!wanted) return findings.leave(`${version} cannot be compared with other versions`);
  for (const { name, virtual } of targets)
    if (virtual !== undefined)
      findings.leave(`a virtual Node, because it has the ${virtual}`, name);
  const hosts = targets.filter(({ virtual }) => virtual === undefined);
  for (const { name, current, goesBack = false } of hosts) {
    const text = moved.get(keyOf(role, name)) ?? current;
    const from = parseVersion(text);
    if (text === undefined || !from) {
      findings.leave(
        text === undefined ? 'its version is unknown' : `its version ${text} is unreadable`,
        name,
      );
      continue;
    }
    const broken = brokenStep(...equallyPrecise(from, wanted), { from: text, to: version });
    const isProven = goesBack && broken?.rule === 'Downgrade';
    if (broken && !isProven && !allow.has(broken.rule))
      findings.add(broken.rule, broken.message, { name, refused: version });
  }
  const kubelets = hosts.filter(({ hasKubelet = role === 'worker' }) => hasKubelet);
  if (kubelets.length === 0 || allow.has('KubeletAhead')) return;
  const behind = [...servers].flatMap(([name, server]) => {
    const at = parseVersion(server);
    // Patches may differ, but a kubelet must not have a newer minor version.
    return at && isNewerMinor(wanted, at) ? [`${name} (${server})`] : [];
  });
  const what = `would have a kubelet of ${version}, newer than the API server of ${listed(behind)}`;
  if (behind.length > 0)
    for (const { name } of kubelets) findings.add('KubeletAhead', what, { name, refused: version });
  for (const [name, server] of servers)
    if (!parseVersion(server)) findings.leave('the version of its API server is unknown', name);
}

interface WorkerNow {
  readonly name: string;
  readonly version: string | undefined;
}

/**
 * Returns the workers of all stages with their present versions, which are the versions after all stages that are
 * already judged. Virtual Nodes are left out, because they have no kubelet.
 */
function workersNow(
  stages: readonly VersionStage[],
  moved: ReadonlyMap<string, string>,
): readonly WorkerNow[] {
  const targets = stages
    .filter(({ role }) => role === 'worker')
    .flatMap((stage) => stage.targets)
    .filter(({ virtual }) => virtual === undefined);
  const byName = new Map(targets.map((target) => [target.name, target]));
  return [...byName.values()].map(({ name, current }) => ({
    name,
    version: moved.get(keyOf('worker', name)) ?? current,
  }));
}

/**
 * Finds the workers that would be newer than an API server, because the stage takes the API server to an earlier minor
 * version. A later stage may take the workers back as well, but until then the API server is too old for them.
 */
function judgeLeftAhead(
  { version, targets }: VersionStage,
  plan: {
    readonly stages: readonly VersionStage[];
    readonly moved: ReadonlyMap<string, string>;
    readonly servers: ReadonlyMap<string, string | undefined>;
  },
  findings: PlanFindings,
): void {
  const wanted = parseVersion(version);
  if (!wanted) return;
  const lowered = targets.filter(({ name, current }) => {
    const at = parseVersion(plan.servers.get(name) ?? current);
    return at !== undefined && isNewerMinor(at, wanted);
  });
  if (lowered.length === 0) return;
  const names = listed(lowered.map(({ name }) => name));
  for (const { name, version: text } of workersNow(plan.stages, plan.moved)) {
    const at = parseVersion(text);
    if (at && isNewerMinor(at, wanted))
      findings.add(
        'KubeletAhead',
        `would still have a kubelet of ${text} when the API server of ${names} goes back to ${version}: workers must go back in an earlier command`,
        { name, refused: version },
      );
  }
}

function keyOf(role: VersionStage['role'], name: string): string {
  return `${role}/${name}`;
}

/** The order in which the problems of a plan are listed. The rules about the step itself come first. */
const LISTED: Readonly<Record<VersionRule, number>> = {
  SkippedMinor: 1,
  Downgrade: 2,
  KubeletAhead: 3,
  KubeletBehind: 4,
};

interface PlanFindings {
  /** Records that a step of the target `name` breaks a rule. `what` is the rest of the sentence, which names the refused version. */
  add(
    rule: VersionRule,
    what: string,
    by: { readonly name: string; readonly refused: string },
  ): void;
  /** Records a check that was not made. Without names, the record is about the whole stage. */
  leave(what: string, ...names: readonly string[]): void;
  verdict(remedyOf: RemedyOf): VersionVerdict;
}

/**
 * Returns a collection that groups names by finding, so that many nodes with one problem make one
 * sentence.
 */
function planFindings(): PlanFindings {
  const broken = new Map<
    string,
    {
      readonly rule: VersionRule;
      readonly what: string;
      readonly refused: string;
      readonly names: string[];
    }
  >();
  const left = new Map<string, string[]>();
  return {
    add: (rule, what, { name, refused }) =>
      void broken
        .getOrInsert(`${rule} ${what}`, { rule, what, refused, names: [] })
        .names.push(name),
    leave: (what, ...names) => void left.getOrInsert(what, []).push(...names),
    verdict: (remedyOf) => ({
      // The remedy of the first problem is shown, and it often ends the other problems, too.
      problems: [...broken.values()]
        .toSorted((one, other) => LISTED[one.rule] - LISTED[other.rule])
        .map(({ rule, what, refused, names }) => ({
          code: rule,
          message: `${listed(names)} ${what} (rule ${rule}${remedyOf(rule)})`,
          details: { versions: [refused] },
        })),
      unchecked: [...left].map(([what, names]) =>
        [listed([...new Set(names)]), what].filter((part) => part !== '').join(': '),
      ),
    }),
  };
}
