/** Tests the warning about commands of a Plan that take controllers too far ahead of its workers. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { buildPlan, buildUpdate, listed } from '../../test/support/builders/plans.ts';
import { validate } from '../../test/support/builders/validation.ts';

async function planFile(text: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-validate-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const path = join(directory, 'plan.yaml');
  await writeFile(path, text);
  return path;
}

test.each<[string, readonly { version: string; roles: string; forced?: true }[], boolean]>([
  [
    'two minor versions before any worker',
    [
      { version: 'v1.35.4+k0s.0', roles: 'controllers' },
      { version: 'v1.36.3+k0s.0', roles: 'controllers' },
      { version: 'v1.37.1+k0s.0', roles: 'controllers workers' },
    ],
    true,
  ],
  [
    'two minor versions, and the workers follow in each command',
    [
      { version: 'v1.35.4+k0s.0', roles: 'controllers workers' },
      { version: 'v1.36.3+k0s.0', roles: 'controllers workers' },
      { version: 'v1.37.1+k0s.0', roles: 'controllers' },
    ],
    false,
  ],
  [
    'one minor version before the workers',
    [
      { version: 'v1.35.4+k0s.0', roles: 'controllers' },
      { version: 'v1.36.3+k0s.0', roles: 'controllers workers' },
    ],
    false,
  ],
  [
    'two minor versions with forceupdate',
    [
      { version: 'v1.35.4+k0s.0', roles: 'controllers' },
      { version: 'v1.36.3+k0s.0', roles: 'controllers' },
      { version: 'v1.37.1+k0s.0', roles: 'controllers', forced: true },
    ],
    false,
  ],
])(
  'a Plan that takes controllers forward by %s gets a warning only if workers stay too old',
  async (_title, steps, isWarned) => {
    const commands = steps.map(({ version, roles, forced }) => ({
      k0supdate: buildUpdate({
        version,
        targets: Object.fromEntries(roles.split(' ').map((role) => [role, listed('n1')])),
        ...(forced ? { forceupdate: true } : {}),
      }),
    }));
    let told = '';
    const path = await planFile(stringify(buildPlan({ commands })));
    await validate([path], (text) => {
      told += text;
    });
    const warning =
      'spec.commands[2].k0supdate.version: this command takes controllers to v1.37.1+k0s.0 before any worker has more than v1.35, and k0s supports workers that are at most 1 minor version older: list the workers in an earlier command, too. Refit refuses this step unless an UpgradePolicy allows KubeletBehind';
    expect(told.includes(warning)).toBe(isWarned);
    expect(told.includes('KubeletBehind')).toBe(isWarned);
  },
);
