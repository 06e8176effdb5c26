/** Judges the files of k0s for `refit validate`: Plans and UpdateConfigs. */
import { type Plan, planKind } from '../../../api/autopilot/plan.ts';
import { type UpdateConfig, updateConfigKind } from '../../../api/autopilot/update-config.ts';
import type { FileKind, Judgement } from '../../../cli/contract/file-kind.ts';
import { readUpdateConfig } from '../../../updates/config/read-config.ts';
import { counted } from '../../../util/phrases.ts';
import { parseVersion, type Version } from '../../../util/version.ts';
import { K0S_MOST_BEHIND } from '../../../versions/k0s-rules.ts';
import { brokenStep } from '../../../versions/kubeadm-rules.ts';
import { problemsOf, targetProblems } from '../plan/problems.ts';

export const k0sFiles: readonly FileKind[] = [
  {
    form: 'object',
    holds: 'plans',
    kind: planKind,
    judge: (object) => judgePlan(object as Plan),
    conflicts: () => [],
  },
  {
    form: 'object',
    holds: 'settings',
    kind: updateConfigKind,
    judge: (object) => judgeConfig(object as UpdateConfig),
    conflicts: () => [],
  },
];

function judgeConfig(config: UpdateConfig): Judgement {
  const rules = { targetProblems, allowInsecure: false };
  return {
    title: `UpdateConfig ${config.metadata.name} can be followed`,
    problems: readUpdateConfig(config, rules).problems,
    warnings: [],
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
