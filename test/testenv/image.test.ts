/**
 * Tests the container image: its controller becomes the leader on the real API server. It runs as user 65532 and with a
 * read-only file system.
 */
import { globSync } from 'node:fs';
import { chmod, copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { LEADER_LEASE } from '../../src/dialects/autopilot/leader-lease.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { leases } from '../../src/kube/resources.ts';
import { ifFound } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { leftOut } from '../support/left-out.ts';
import { buildOneFile } from '../support/one-file.ts';
import { Container, type UnpackedImage, whyNoContainer } from './container.ts';
import { installKinds, kubeconfigFor } from './control-plane.ts';
import { ownImage } from './own-image.ts';

const PATIENCE = { timeout: 150_000, interval: 200 };
const USER = 65_532;
const why = whyNoContainer();

if (why === undefined) describe('the image', suite);
else leftOut('the image', why);

let directory = '';
let image: UnpackedImage;

async function holder(): Promise<string> {
  using client = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  const { name, namespace } = LEADER_LEASE;
  return (await ifFound(client.get(leases, name, { namespace })))?.spec?.holderIdentity ?? '';
}

function suite(): void {
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'refit-image-'));
    await chmod(directory, 0o755);
    image = await ownImage(directory, await buildOneFile(directory));
    await installKinds();
  });
  afterAll(async () => await rm(directory, { recursive: true }));

  test('it has a user of its own, and no shell', () => {
    expect(image.config).toMatchObject({ User: `${USER}:${USER}`, Entrypoint: ['/usr/bin/refit'] });
    expect(globSync('{usr/bin,usr/sbin,sbin}/*', { cwd: image.root }).toSorted()).toEqual([
      'usr/bin/nsenter',
      'usr/bin/refit',
      'usr/bin/system-upgrade-controller',
    ]);
  });

  test('its controller leads, and releases the lease when it is stopped', async () => {
    const kubeconfig = join(directory, 'kubeconfig');
    await copyFile(await kubeconfigFor('controller'), kubeconfig);
    await chmod(kubeconfig, 0o444);
    const address = `127.0.0.1:${await freePort()}`;
    await using controller = new Container(image, directory, {
      args: ['controller', '--kubeconfig', '/etc/kubeconfig', '--health-address', address],
      files: { '/etc/kubeconfig': kubeconfig },
    });
    await vi.waitFor(
      async () => expect(await holder(), controller.output.join('\n')).not.toBe(''),
      PATIENCE,
    );
    expect((await fetch(`http://${address}/readyz`)).status).toBe(200);

    const status = await readFile(`/proc/${controller.pid}/status`, 'utf8');
    expect(status).toMatch(new RegExp(`^Uid:(\\s${USER}){4}$`, 'm'));
    expect(status).toMatch(/^CapEff:\s0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\s1$/m);
    expect(await readFile(`/proc/${controller.pid}/mounts`, 'utf8')).toMatch(/^\S+ \/ \S+ ro,/m);

    expect(await controller.stop()).toBe(0);
    expect(await holder()).toBe('');
  });

  test('the image also starts Refit with the command of the original, system-upgrade-controller', async () => {
    const entrypoint = ['/bin/system-upgrade-controller'];
    await using controller = new Container(image, directory, { entrypoint, args: [] });
    expect(await controller.ended).toBe(2);
    expect(controller.output.join()).toContain('SYSTEM_UPGRADE_CONTROLLER_NAME is not set');
  });
}
