/** Implements `refit validate`: checks files of any dialect, without a cluster. */
import { type Plan, planKind } from '../api/autopilot/plan.ts';
import { type UpdateConfig, updateConfigKind } from '../api/autopilot/update-config.ts';
import type { CattlePlan } from '../api/cattle/plan.ts';
import { nameOf, type ReadObject, readObjects } from '../api/read-object.ts';
import { type UpdaterSet, updaterSetKind } from '../api/refit/updater-set.ts';
import {
  type UpgradePolicy,
  type UpgradePolicySpec,
  upgradePolicySpecSchema,
} from '../api/refit/upgrade-policy.ts';
import { cattlePlanKind, upgradePolicyKind } from '../api/schemas.ts';
import { isAboutRemoved } from '../api/without-invalid.ts';
import { problemsOf, targetProblems } from '../dialects/autopilot/plan/problems.ts';
import { setProblems } from '../dialects/capi/hooks/updaters/updater-sets.ts';
import { fieldFindings } from '../dialects/cattle/plan/field-problems.ts';
import { resolveLatest, unknownDigestPaths } from '../dialects/cattle/plan/latest.ts';
import { rivalsAmong } from '../dialects/cattle/plan/rivals.ts';
import { type Manifest, parseManifest } from '../dialects/kubeadm/plan/manifest.ts';
import { DIALECTS } from '../dialects/registry.ts';
import { readPolicy } from '../engine/policy/read-policy.ts';
import { readUpdateConfig } from '../updates/config/read-config.ts';
import { failing, RefitError } from '../util/errors.ts';
import { isRecord } from '../util/json.ts';
import { counted } from '../util/phrases.ts';
import { parseVersion, type Version } from '../util/version.ts';
import { parseYaml } from '../util/yaml.ts';
import { K0S_MOST_BEHIND } from '../versions/k0s-rules.ts';
import { brokenStep } from '../versions/kubeadm-rules.ts';
import { type InputFile, readInputs } from './input-files.ts';
import { unfollowedDrain } from './unfollowed-drain.ts';
import { unlistedJobs } from './unlisted-jobs.ts';
import { unplacedHooks } from './unplaced-hooks.ts';

/**
 * Prints one line for each valid object, then rejects with REFIT_FILE if any object is wrong. The
 * error lists every wrong field, what was found, and what would be right.
 */
export async function validate(
  paths: readonly string[],
  write: (text: string) => void,
): Promise<void> {
  const wrong: string[] = [];
  const earlier: CattlePlan[] = [];
  let judged = 0;
  for (const file of await readInputs(paths)) {
    const { judgements, problems, others } = judgeFile(file);
    judged += judgements.length;
    for (const line of others) write(`${line}, which is not checked\n`);
    wrong.push(...problems);
    for (const { place, title, problems: own, warnings: found = [], plan } of judgements) {
      const warnings = [...found, ...(plan === undefined ? [] : rivalsAmong(plan, earlier))];
      if (plan !== undefined) earlier.push(plan);
      if (own.length > 0) {
        wrong.push(...own.map((problem) => `${place}: ${problem}`));
      } else
        for (const line of [title, ...warnings.map((warning) => `warning: ${warning}`)])
          write(`${place}: ${line}\n`);
    }
  }
  if (judged === 0 && wrong.length === 0)
    wrong.push(`${paths.join(', ')}: found nothing to check, expected ${EXPECTED}`);
  if (wrong.length > 0)
    throw new RefitError('REFIT_FILE', '', {
      problems: wrong,
      hint: 'correct the fields; `kubectl explain` shows every field of a kind',
    });
}

interface FileJudgement {
  readonly judgements: readonly (Judgement & { readonly place: string })[];
  readonly problems: readonly string[];
  readonly others: readonly string[];
}

function judgeFile({ path, text, isFromFolder }: InputFile): FileJudgement {
  const fail = failing('REFIT_FILE', `${path}: is not YAML: `);
  if (parseYaml(text, fail).some(isManifest)) {
    const judgement = { ...judgeManifest(parseManifest(text, path)), place: path };
    return { judgements: [judgement], problems: [], others: [] };
  }
  const { objects, parts, problems: shapes, others } = readObjects(text, path, KINDS);
  const seen = new Set<string>();
  const judgements = objects.map((each) => {
    const judgement = judge(each);
    const warnings = [
      ...namespaceWarnings(each),
      ...(judgement.warnings ?? []),
      ...repetition(each, seen),
    ];
    return { ...judgement, warnings, place: each.place };
  });
  const rules = parts.flatMap((part) =>
    judge(part)
      .problems.filter((problem) => !isAboutRemoved(problem, part.removed))
      .map((problem) => `${part.place}: ${problem}`),
  );
  const problems = [...shapes, ...rules];
  const isMeant = isFromFolder || objects.length + problems.length > 0;
  return isMeant
    ? { judgements, problems, others }
    : { judgements, problems: others.map((found) => `${found}, expected ${EXPECTED}`), others: [] };
}

interface Judgement {
  readonly title: string;
  readonly problems: readonly string[];
  readonly warnings?: readonly string[];
  /** The Plan itself, if it must be compared with the other Plans in the files. */
  readonly plan?: CattlePlan;
}

function judge({ kind, object }: ReadObject): Judgement {
  if (kind === planKind) return judgePlan(object as Plan);
  if (kind === updateConfigKind) return judgeConfig(object as UpdateConfig);
  if (kind === cattlePlanKind) return judgeCattlePlan(object);
  if (kind === updaterSetKind) return judgeUpdaterSet(object as UpdaterSet);
  return judgePolicy(object as UpgradePolicy);
}

/**
 * Returns a warning if `seen` already contains the same object, and adds the object to `seen`. kubectl would apply both
 * objects, and the API server would keep the second.
 */
function repetition({ kind, object }: ReadObject, seen: Set<string>): string[] {
  const { name, namespace } = object.metadata;
  const { group, kind: kindName } = kind.resource;
  const key = JSON.stringify([group, kindName, namespace, name]);
  const isRepeated = seen.has(key);
  seen.add(key);
  return isRepeated
    ? [`the file has ${kindName} ${name} twice: only the last one stays after kubectl apply`]
    : [];
}

/**
 * Returns a warning if an object of a cluster-scoped kind has a namespace, as in the examples of k0s. An API server
 * ignores this namespace.
 */
function namespaceWarnings({ kind, object }: ReadObject): string[] {
  const { namespace } = object.metadata;
  if (kind.resource.namespaced || namespace === undefined) return [];
  return [
    `metadata.namespace: "${namespace}" is not used, because the kind has no namespaces; remove it`,
  ];
}

function judgeUpdaterSet(set: UpdaterSet): Judgement {
  const title = `UpdaterSet ${set.metadata.name} is valid`;
  return { title, problems: setProblems(set) };
}

function judgePolicy(policy: UpgradePolicy): Judgement {
  const title = `UpgradePolicy ${policy.metadata.name} is valid`;
  const problems = readPolicy(policy).problems.map(({ message }) => message);
  return { title, problems, warnings: warningsOf(policy) };
}

/**
 * Returns the warnings about a policy. For an invalid policy, returns no warnings, because its fields may have any
 * type.
 */
function warningsOf({ spec }: UpgradePolicy): string[] {
  const checked = upgradePolicySpecSchema.safeParse(spec);
  if (!checked.success) return [];
  const { data } = checked;
  return [
    ...retryWarnings(data),
    ...rollBackWarnings(data),
    ...unusedWarnings(data),
    ...unfollowedDrain(data),
    ...unplacedHooks(data),
    ...unlistedJobs(data),
  ];
}

/** Returns a warning if the policy sets retries for plans that have their own number of attempts. */
function retryWarnings({ retry, plans = [] }: UpgradePolicySpec): string[] {
  const dialects = plans.flatMap(({ dialect }) => dialect ?? []);
  const without = dialects.filter((dialect) => dialect !== 'autopilot');
  if (retry === undefined || without.length === 0) return [];
  const plansOf = [...new Set(without)].join(', ');
  return [
    `spec.retry has no effect on plans of ${plansOf}; only k0s Plans (autopilot) are tried again. In plans of cattle, the backoffLimit of the Job counts (SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT)`,
  ];
}

/** Returns a warning if the policy asks for roll-backs of plans that only people can roll back. */
function rollBackWarnings({ onFailure, plans = [] }: UpgradePolicySpec): string[] {
  if (onFailure !== 'RollBack') return [];
  const named = new Set(plans.flatMap(({ dialect }) => dialect ?? []));
  return [...named].flatMap((name) => {
    const rollBack = DIALECTS.find((dialect) => dialect.name === name)?.rollBack;
    return rollBack === undefined || !('byHand' in rollBack)
      ? []
      : [`spec.onFailure: RollBack acts as Stop for plans of ${name}: ${rollBack.byHand}`];
  });
}

/** Returns a warning for each field that has no effect, because of another field or because of the plans of the policy. */
function unusedWarnings({ drain, keepPrevious, plans }: UpgradePolicySpec): string[] {
  const dialects = plans?.map(({ dialect }) => dialect ?? 'autopilot') ?? [];
  const isUnkept = dialects.length > 0 && !dialects.includes('autopilot');
  const named = [...new Set(dialects)].join(', ');
  return [
    ...(drain?.enabled === false && drain.evictionRequests === 'Use'
      ? [
          'spec.drain.evictionRequests: Use has no effect, because spec.drain.enabled is false, so nothing is drained; remove one of them',
        ]
      : []),
    ...(keepPrevious !== undefined && isUnkept
      ? [
          `spec.keepPrevious has no effect on plans of ${named}; only nodes of k0s Plans (autopilot) keep a previous binary`,
        ]
      : []),
  ];
}

const KINDS = [
  planKind,
  cattlePlanKind,
  upgradePolicyKind,
  updateConfigKind,
  updaterSetKind,
] as const;

const EXPECTED = KINDS.map(nameOf).join(' or ');

/** Returns true for a manifest of `refit kubeadm`, the only input without kind and apiVersion, and for one of KubeOne. */
function isManifest(document: unknown): boolean {
  if (!isRecord(document)) return false;
  const { kind, apiVersion } = document;
  return (
    kind === 'KubeOneCluster' || (apiVersion === undefined && Object.hasOwn(document, 'hosts'))
  );
}

function judgeManifest({ version, hosts }: Manifest): Judgement {
  const title = `${counted(hosts.length, 'host')} to upgrade to ${version}: the manifest is valid`;
  return { title, problems: [] };
}

function judgeCattlePlan(plan: CattlePlan): Judgement {
  const { name, namespace = 'default' } = plan.metadata;
  const title = `Plan ${namespace}/${name} can be carried out`;
  const { nodeSelector, concurrency } = plan.spec ?? {};
  const fields = fieldFindings(plan);
  const { problems } = resolveLatest(plan, undefined);
  // A channel that gave no answer is not a problem here, because only the controller sends requests to the channel.
  const own = problems
    .filter(({ code }) => code !== 'ChannelUnanswered')
    .map(({ message }) => message)
    .filter((message) => !fields.problems.includes(message));
  const nobody = 'so the Plan selects no node and is Complete at once';
  const warnings = [
    ...(nodeSelector ? [] : [`spec.nodeSelector: is missing, ${nobody}; use {} for all nodes`]),
    ...((concurrency ?? 0) > 0
      ? []
      : [`spec.concurrency: is ${concurrency ?? 'missing'}, ${nobody}; use 1`]),
    ...fields.warnings,
    ...unknownDigestPaths(plan).map(
      (path) =>
        `metadata.annotations[upgrade.cattle.io/digest]: ${JSON.stringify(path)} names no field of the Plan, so no change starts it again; use for example spec.upgrade`,
    ),
  ];
  return { title, problems: [...own, ...fields.problems], warnings, plan };
}

function judgeConfig(config: UpdateConfig): Judgement {
  const rules = { targetProblems, allowInsecure: false };
  return {
    title: `UpdateConfig ${config.metadata.name} can be followed`,
    problems: readUpdateConfig(config, rules).problems,
  };
}

function judgePlan(plan: Plan): Judgement {
  const { metadata, spec } = plan;
  const id = spec.id === undefined ? '' : ` (${spec.id})`;
  return {
    title: `Plan ${metadata.name}${id} with ${counted(spec.commands.length, 'command')} can be carried out`,
    problems: problemsOf(plan).map(({ message }) => message),
    warnings: [
      ...missingForK0s(plan),
      ...unverified(plan),
      ...brokenSteps(plan),
      ...lateWorkers(plan),
    ],
  };
}

/** Returns a warning for each field that the CRD of k0s requires but the CRD of Refit does not require. */
function missingForK0s({ spec }: Plan): string[] {
  const demanded =
    "is missing; if the CustomResourceDefinition of k0s is installed, the API server refuses the Plan, and k0s's own leader does not carry it out; add for example";
  return [
    ...(spec.id === undefined ? [`spec.id: ${demanded} 2026-11-20`] : []),
    ...(spec.timestamp === undefined ? [`spec.timestamp: ${demanded} now`] : []),
  ];
}

function unverified({ spec }: Plan): string[] {
  return spec.commands.flatMap((command, index) =>
    (['k0supdate', 'airgapupdate'] as const).flatMap((update) =>
      Object.entries(command[update]?.platforms ?? {})
        .filter(([, { sha256 }]) => !sha256)
        .map(
          ([platform]) =>
            `spec.commands[${index}].${update}.platforms.${platform}.sha256: is missing, so nodes run whatever the server sends; add the SHA-256 of the file`,
        ),
    ),
  );
}

/**
 * Returns warnings about version steps between the commands of a plan. The step of the first command is not checked, because the running
 * version is unknown here.
 */
function brokenSteps({ spec }: Plan): string[] {
  const updates = spec.commands.flatMap(({ k0supdate }, index) => {
    const parsed =
      k0supdate && k0supdate.forceupdate !== true ? parseVersion(k0supdate.version) : undefined;
    return k0supdate && parsed ? [{ index, version: k0supdate.version, parsed }] : [];
  });
  return updates.slice(1).flatMap(({ index, version, parsed }, at) => {
    const before = updates[at];
    const broken =
      before && brokenStep(before.parsed, parsed, { from: before.version, to: version });
    if (!before || !broken) return [];
    const field = `spec.commands[${index}].k0supdate.version`;
    return [
      `${field}: nodes of spec.commands[${before.index}] ${broken.message}: Refit refuses this step unless an UpgradePolicy allows ${broken.rule}; k0s's own leader does not check this rule, so Refit may end the plan if it becomes the leader later`,
    ];
  });
}

/**
 * Returns a warning for each command that takes controllers so far ahead that k0s no longer supports the workers. The
 * file does not say which version workers have at first, but no worker is newer than a controller.
 */
function lateWorkers({ spec }: Plan): string[] {
  let newest: Version | undefined;
  return spec.commands.flatMap(({ k0supdate }, index) => {
    const version = parseVersion(k0supdate?.version);
    if (k0supdate === undefined || version === undefined) return [];
    const { forceupdate, targets } = k0supdate;
    newest ??= version;
    const behind = version.major === newest.major ? version.minor - newest.minor : 0;
    const had = `v${newest.major}.${newest.minor}`;
    if (targets.workers !== undefined) newest = version;
    if (behind <= K0S_MOST_BEHIND || targets.controllers === undefined || forceupdate === true)
      return [];
    return [
      `spec.commands[${index}].k0supdate.version: this command takes controllers to ${k0supdate.version} before any worker has more than ${had}, and k0s supports workers that are at most ${counted(K0S_MOST_BEHIND, 'minor version')} older: list the workers in an earlier command, too. Refit refuses this step unless an UpgradePolicy allows KubeletBehind`,
    ];
  });
}
