/** Reads the plans and policies that a preview is asked about from the texts of files. */
import { planKind } from '../../api/autopilot/plan.ts';
import { nameOf, type ReadObject, readObjects } from '../../api/read-object.ts';
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import { cattlePlanKind, upgradePolicyKind } from '../../api/schemas.ts';
import { readPolicy } from '../../engine/policy/read-policy.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { failing, RefitError } from '../../util/errors.ts';
import { isRecord } from '../../util/json.ts';
import { parseYaml } from '../../util/yaml.ts';
import type { InputFile } from '../input-files.ts';

/** The kinds of plans that users write as files. */
export const PLAN_KINDS = [planKind, cattlePlanKind] as const;
const MANIFEST_HINT = '`refit kubeadm plan -m` shows what a manifest would do';
const EXPECTED = PLAN_KINDS.map(nameOf).join(' or ');

export interface PlanFiles {
  readonly plans: readonly ReadObject[];
  readonly policies: readonly UpgradePolicy[];
}

export interface FileLimits {
  /** The maximum number of plans in the files, and also of policies. There is no maximum if it is absent. */
  readonly mostPlans?: number;
  /** Says what takes a manifest of hosts, which no Plan is. */
  readonly manifestHint?: string;
}

/** Throws REFIT_FILE with these problems. */
export function refuseFiles(
  problems: readonly string[],
  hint = '`kubectl explain` shows every field of a kind',
): never {
  throw new RefitError('REFIT_FILE', '', { problems, hint });
}

/** Returns the plans and the policies of the files. Objects of other kinds are ignored. Throws REFIT_FILE with every problem. */
export function planFilesIn(
  files: readonly InputFile[],
  { mostPlans = Number.POSITIVE_INFINITY, manifestHint = MANIFEST_HINT }: FileLimits = {},
): PlanFiles {
  const read = files.map(({ path, text }) =>
    readObjects(text, path, [...PLAN_KINDS, upgradePolicyKind]),
  );
  const objects = read.flatMap((each) => each.objects);
  const plans = objects.filter(({ kind }) => kind !== upgradePolicyKind);
  const policies = objects.filter(({ kind }) => kind === upgradePolicyKind);
  // A manifest beside Plans is ignored like every object of another kind.
  const manifests =
    plans.length > 0
      ? []
      : files.filter(({ text }) => isManifestOfHosts(text)).map(({ path }) => path);
  if (manifests.length > 0)
    refuseFiles(
      manifests.map((path) => `${path}: holds a manifest of hosts, expected ${EXPECTED}`),
      manifestHint,
    );
  const problems = read.flatMap((each) => each.problems);
  for (const { place, object } of policies) {
    const wrong = readPolicy(object as UpgradePolicy).problems;
    problems.push(...wrong.map(({ message }) => `${place}: ${message}`));
  }
  const others = [
    ...read.flatMap((each) => each.others),
    ...policies.map(({ place, kind }) => `${place}: holds ${nameOf(kind)}`),
  ];
  // The message names objects of other kinds only if there are no plans and no other problems. If a file has mistakes,
  // it contains objects of the expected kinds.
  if (plans.length === 0 && problems.length === 0 && others.length > 0)
    refuseFiles(
      others.map((found) => `${found}, expected ${EXPECTED}`),
      '`refit validate` checks policies and UpdateConfigs; `refit preview machine/NAME` shows the update of a Machine',
    );
  if (plans.length > mostPlans)
    problems.push(`found ${plans.length} plans, expected at most ${mostPlans}`);
  if (policies.length > mostPlans)
    problems.push(`found ${policies.length} policies, expected at most ${mostPlans}`);
  if (problems.length > 0) refuseFiles(problems);
  return { plans, policies: policies.map(({ object }) => withoutStatus(object)) };
}

/** Returns the documents of the text; an empty list if it is no YAML, which the reader of the objects reports. */
function documentsIn(text: string): readonly unknown[] {
  try {
    return parseYaml(text, failing('REFIT_FILE'));
  } catch {
    return [];
  }
}

/** Returns true for the manifest of hosts that `refit kubeadm` takes, also in the form of KubeOne. */
function isManifestOfHosts(text: string): boolean {
  return documentsIn(text).some(
    (each) =>
      isRecord(each) &&
      (each['kind'] === 'KubeOneCluster' ||
        (each['apiVersion'] === undefined && Object.hasOwn(each, 'hosts'))),
  );
}

/** Returns the policy without its status, which describes another version of the policy if it was in a file. */
function withoutStatus({ status: _status, ...policy }: KubeObject & { status?: unknown }) {
  return policy as UpgradePolicy;
}
