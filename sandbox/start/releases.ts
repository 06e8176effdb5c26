/** The good and bad releases that the stand-in cluster of Autopilot offers, and a file with a Plan for each release. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Plan } from '../../src/api/autopilot/plan.ts';
import type { UpgradePolicy } from '../../src/api/refit/upgrade-policy.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type { Broken } from '../hosts/stand-in.ts';

export const FROM = 'v1.36.3+k0s.0';
export const TO = 'v1.36.3+k0s.2';
export const CRASHES = 'v1.36.5+k0s.0';
const OTHER_VERSION = 'v1.36.6+k0s.0';

/** The fault of each bad build, by version. */
export const BAD_BUILDS: Readonly<Record<string, Broken>> = {
  [CRASHES]: 'crashes',
  [OTHER_VERSION]: 'wrong-version',
};

interface PlanFile {
  readonly file: string;
  readonly version: string;
  readonly about: string;
  /** True if the Plan has the hash of another file. */
  readonly isWrongHash?: true;
}

/** The first three files are the files that a newcomer is asked to apply. */
const FILES: readonly PlanFile[] = [
  { file: 'plan.yaml', version: 'v1.36.4+k0s.0', about: 'upgrade again' },
  { file: 'plan-back.yaml', version: FROM, about: 'roll back' },
  { file: 'plan-crash.yaml', version: CRASHES, about: 'failure: this release crashes' },
  {
    file: 'plan-other-version.yaml',
    version: OTHER_VERSION,
    about: 'this release reports another version',
  },
  {
    file: 'plan-wrong-hash.yaml',
    version: 'v1.36.7+k0s.0',
    about: 'this Plan has a wrong hash',
    isWrongHash: true,
  },
  { file: 'plan-minor.yaml', version: 'v1.37.0+k0s.0', about: 'the next minor version' },
];
const TOLD = 3;

/** All versions that the download server has. */
export const KEPT_OFFERS: readonly string[] = [TO, ...FILES.map(({ version }) => version)];

/** Allows Plans to go back, and does not wait 90 s for a release that never answers. It names the Plan, so it replaces other policies. */
export const TRIAL_POLICY: UpgradePolicy = {
  apiVersion: 'upgrade.refit.dev/v1alpha1',
  kind: 'UpgradePolicy',
  metadata: { name: 'trial' },
  spec: {
    plans: [{ dialect: 'autopilot', name: 'autopilot' }],
    versions: { allow: ['Downgrade'] },
    deadlines: { restart: '15s' },
  },
};

/** Writes the files, and returns the lines that tell how to use them. */
export async function writePlans(
  { plan }: Pick<Cluster, 'plan'>,
  directory: string,
  concurrent: number,
): Promise<string[]> {
  const plans = join(directory, 'plans');
  await mkdir(plans, { recursive: true });
  for (const each of FILES) {
    const wanted = { id: each.file, version: each.version, concurrent };
    const made = plan(wanted);
    const wrong = plan({ ...wanted, version: TO });
    const written = each.isWrongHash === true ? withHashOf(made, wrong) : made;
    const text = [TRIAL_POLICY, written].map((object) => stringify(object)).join('---\n');
    await writeFile(join(plans, each.file), text);
  }
  const command = ({ file }: PlanFile): string => `kubectl replace --force -f ${file}`;
  const width = Math.max(...FILES.map((each) => command(each).length));
  const line = (each: PlanFile): string => `  ${command(each).padEnd(width)}   # ${each.about}`;
  return [
    `  cd ${plans}`,
    ...FILES.slice(0, TOLD).map(line),
    '',
    'More to try:',
    '',
    ...FILES.slice(TOLD).map(line),
    '',
    'Each file has a Plan and an UpgradePolicy. `refit status -w` follows the Plan to its end.',
    '`refit history` lists the runs, also several runs of one file. Pass one of them to `refit rollback --run`.',
  ];
}

function withHashOf(plan: Plan, { spec }: Plan): Plan {
  const sha256 = spec.commands[0]?.k0supdate?.platforms['linux-amd64']?.sha256;
  const commands = plan.spec.commands.map((command) => {
    const platform = command.k0supdate?.platforms['linux-amd64'];
    if (command.k0supdate === undefined || platform === undefined) return command;
    const platforms = { 'linux-amd64': { ...platform, ...(sha256 !== undefined && { sha256 }) } };
    return { ...command, k0supdate: { ...command.k0supdate, platforms } };
  });
  return { ...plan, spec: { ...plan.spec, commands } };
}
