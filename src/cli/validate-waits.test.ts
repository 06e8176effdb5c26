/** Shows that `refit validate` compares a Plan of Rancher with the Plans of all files, in any order. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { buildCattlePlan, type CattleSpec } from '../../test/support/builders/cattle-plans.ts';
import { validate } from '../../test/support/builders/validation.ts';

const VERSION = 'v1.36.3+rke2r1';
const UPGRADE = { image: 'rancher/rke2-upgrade' };

function written(name: string, spec: Partial<CattleSpec>): string {
  const plan = buildCattlePlan(name, { version: VERSION, upgrade: UPGRADE, ...spec });
  return stringify({ apiVersion: 'upgrade.cattle.io/v1', kind: 'Plan', ...plan });
}

test.each(['agents.yaml', 'z-agents.yaml'])(
  'a Plan in %s that waits for a Plan under a wrong name is warned about',
  async (file) => {
    const folder = await mkdtemp(join(tmpdir(), 'refit-validate-'));
    onTestFinished(async () => await rm(folder, { recursive: true }));
    const prepare = { ...UPGRADE, args: ['prepare', 'server-plan'] };
    await writeFile(join(folder, file), written('rke2-agent', { prepare }));
    await writeFile(join(folder, 'servers.yaml'), written('rke2-server', {}));
    const lines: string[] = [];
    await validate([folder], (line) => lines.push(line));
    expect(lines.filter((line) => line.includes('waits for'))).toEqual([
      expect.stringContaining(
        `${file}: warning: Plan system-upgrade/rke2-agent waits for Plan system-upgrade/server-plan in spec.prepare, which none of the files has`,
      ),
    ]);
  },
);

test('a placeholder in a file is named beside the problem that it causes', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'refit-validate-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  const path = join(folder, 'plan.yaml');
  await writeFile(path, written('p', { version: '${KUBE_VERSION}' }));
  await expect(validate([path], () => undefined)).rejects.toMatchObject({
    problems: [expect.stringMatching(/; \$\{KUBE_VERSION\} is a placeholder, so /)],
  });
  const channel = 'https://update.rke2.io/v1-release/channels/${channel}';
  await writeFile(path, written('p', { version: '', channel }));
  const lines: string[] = [];
  await validate([path], (line) => lines.push(line));
  expect(lines.join('')).toMatch(/warning: spec\.channel: .*\$\{channel\} is a placeholder, so /);
});
