/** Tests that the agent of a controller, installed under real systemd, gets its own rights and certificate and registers. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildProgram } from '../../tools/build/refit.ts';
import { buildBinary } from '../../tools/release/binary.ts';
import { PLATFORMS, readLock } from '../../tools/release/node-package.ts';
import { bootInJail, whyNoSystemd } from '../agent/systemd/jail.ts';
import type { SeenController } from './install-host/seen.ts';

const INSIDE = join(import.meta.dirname, 'install-host', 'inside.ts');
const why = whyNoSystemd();

if (why === undefined) describe('a controller', suite);
else test(`a controller: left out, since ${why}`, () => expect(INSIDE).toContain('inside'));

function suite(): void {
  let directory = '';
  let seen: SeenController;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'refit-install-'));
    const platform = PLATFORMS.find(({ arch }) => arch === process.arch);
    if (platform === undefined) throw new Error(`no binary is made for ${process.arch}`);
    await buildProgram(join(directory, 'program'));
    await buildBinary(platform, await readLock(process.cwd()), join(directory, 'program'), join(directory, 'refit'));
    const { status, output } = bootInJail([process.execPath, INSIDE, directory], directory, 200_000);
    expect(status, output).toBe(0);
    const found = JSON.parse(readFileSync(join(directory, 'seen.json'), 'utf8')) as SeenController & { error?: string };
    expect(found.error).toBeUndefined();
    seen = found;
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  test('install says which credentials the agent gets', () => {
    expect(seen.installed).toMatch(/^found k0s v1\.36\.3\+k0s\.0, a controller /);
    expect(seen.installed).toContain(
      `wrote /etc/refit/agent.kubeconfig: gets a certificate for controlnode ${seen.name} with /var/lib/k0s/pki/admin.conf`,
    );
  });

  test('its agent registers the controller, as its own user', () => {
    expect(seen.controlNode).toBe(`controlnode.autopilot.k0sproject.io/${seen.name}`);
    expect(seen.user).toBe(`refit:controlnode:${seen.name}`);
  });

  test('when its certificate has expired it gets the next one, without a restart', () => {
    expect(seen.answered).toBe('FailedDownload');
    expect(seen.isSame).toBe(true);
  });

  test('uninstall leaves nothing on the host', () => {
    expect(seen.left).toEqual([]);
  });
}
