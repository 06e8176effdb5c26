/**
 * Tests the agent of a controller that `refit install` installs under real systemd: the agent gets its own rights and
 * its own certificate, and registers the controller.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bootInJail, whyNoSystemd } from '../agent/systemd/jail.ts';
import { leftOut } from '../support/left-out.ts';
import { buildOneFile } from '../support/one-file.ts';
import type { SeenController } from './install-host/seen.ts';

const INSIDE = join(import.meta.dirname, 'install-host', 'inside.ts');
const why = await whyNoSystemd();

if (why === undefined) describe('a controller', suite);
else leftOut('a controller', why);

function suite(): void {
  let directory = '';
  let seen: SeenController;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'refit-install-'));
    await buildOneFile(directory);
    const { status, output } = await bootInJail(
      [process.execPath, INSIDE, directory],
      directory,
      200_000,
    );
    expect(status, output).toBe(0);
    const found = JSON.parse(
      readFileSync(join(directory, 'seen.json'), 'utf8'),
    ) as SeenController & { error?: string };
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

  test('its rights are those on the Node of its kubelet, whatever AUTOPILOT_HOSTNAME says', () => {
    const [asked, kubelets] = seen.nodes;
    expect(asked).toBe(kubelets);
  });

  test('when its certificate has expired it gets the next one, without a restart', () => {
    expect(seen.answered).toBe('FailedDownload');
    expect(seen.isSame).toBe(true);
  });

  test('uninstall leaves nothing on the host but an agent.yaml that it cannot read, and says so', () => {
    expect(seen.removed).toContain(
      'could not read the agent\'s options: cannot use /etc/refit/agent.yaml: line 1 is "soak 1s": write a flag and its value, such as require-https: true\n' +
        'did not remove the directories that /etc/refit/agent.yaml names, and the files of the agent next to the binary of k0s\n',
    );
    expect(seen.left).toEqual(['/etc/refit']);
  });

  test('uninstall prints the commands that remove the objects of the agent from the cluster', () => {
    expect(seen.removed).toContain(
      `did not remove the objects of this agent from the cluster; to remove them, run:\nkubectl delete controlnode/${seen.name} clusterrole/refit-controlnode:${seen.name} `,
    );
    expect(seen.leftInCluster).toEqual([]);
    expect(seen.removedAgain).not.toContain('kubectl');
  });

  test('uninstall tells of no service where none is', () => {
    expect(seen.removed).toContain('removed systemd unit refit-agent.service\n');
    expect(seen.removedAgain).not.toContain('refit-agent');
  });
}
