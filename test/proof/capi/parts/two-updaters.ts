/**
 * Tests two updaters behind one extension. Neither updater covers the whole change, so each must do its part. First an
 * updater of another vendor works together with Refit's updater, then two updaters of Refit work together.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { updaterSets } from '../../../../src/api/refit/updater-set.ts';
import { systemClock } from '../../../../src/util/clock.ts';
import { freePort } from '../../../../tools/controlplane/ports.ts';
import { type Process, startProcess } from '../../../../tools/controlplane/process.ts';
import { bootstrapTemplate, NAMESPACE, WORKERS } from '../machines/objects.ts';
import { CONFIGURABLE, type Scene } from '../scene.ts';
import { useUpdaters, wantFile, wantTemplate } from './uncovered.ts';
import { wantControlPlane } from './update.ts';

const EXAMPLE = join(import.meta.dirname, '../../../../examples/cluster-api-updater.ts');
const CONTENT = [{ path: '/etc/two-updaters', content: 'two' }];

export async function twoUpdaters(scene: Scene): Promise<void> {
  const { checks, cluster } = scene;
  const port = await freePort();
  const files = await startExample(scene, port);
  try {
    await useUpdaters(scene, {
      uncovered: 'Refuse',
      updaters: [
        {
          name: 'files',
          url: `https://127.0.0.1:${port}`,
          caBundle: Buffer.from(scene.extension.authority).toString('base64'),
          clientCertificate: 'updaters',
        },
        { name: 'refit', refit: {} },
      ],
    });
    const workers = await scene.identities('workers');
    const version = scene.nextVersion();
    await checks.check(
      'files and version of the workers: in place, one part by each updater',
      async () => {
        await wantFile(scene, CONTENT[0]?.path ?? '', { version });
        await scene.settled('workers', version);
        const wrong = await scene.wrongAfter('workers', version, workers);
        return [...wrong, ...(await missing(scene, workers.keys()))];
      },
    );
    const [machine] = await scene.machines('control plane');
    const current = machine?.spec.version ?? '';
    const controlPlane = await scene.identities('control plane');
    await checks.check(
      'files of the control plane: in place, by the other updater alone',
      async () => {
        const starts = JSON.stringify(scene.starts(controlPlane.keys()));
        await wantControlPlane(scene, { kubeadmConfigSpec: { files: CONTENT } });
        await scene.until(
          'the files of all Machines',
          async () => (await missing(scene, controlPlane.keys())).length === 0,
        );
        await scene.settled('control plane', current);
        const wrong = await scene.wrongAfter('control plane', current, controlPlane);
        const isSame = JSON.stringify(scene.starts(controlPlane.keys())) === starts;
        return [
          ...wrong,
          ...(isSame ? [] : ['a service was started, although only files changed']),
        ];
      },
    );
    checks.gap(
      'kubelets and kubeadm on the Machines',
      'stand-in services; npm run proof:kubeadm has real ones',
    );
  } finally {
    await files.stop();
  }
  await bothOfRefit(scene);
  await cluster.client.delete(updaterSets, 'in-place');
}

const OWN = { path: `${CONFIGURABLE}/two-updaters`, content: 'by the agent\n' };

async function bothOfRefit(scene: Scene): Promise<void> {
  const { checks } = scene;
  for (const host of scene.machineNodes.hosts.values())
    await mkdir(join(host.directory, 'root', CONFIGURABLE), { recursive: true });
  const updaters = [
    { name: 'configuration', nodeConfiguration: {} },
    { name: 'refit', refit: {} },
  ];
  await useUpdaters(scene, { uncovered: 'Refuse', updaters });
  const workers = await scene.identities('workers');
  const version = scene.nextVersion();
  await checks.check(
    'a file by the agents, then the version, of the workers: in place, by both updaters of Refit',
    async () => {
      await scene.apply(bootstrapTemplate(`${WORKERS}-own`, [...CONTENT, OWN]));
      await wantTemplate(scene, `${WORKERS}-own`, { version });
      await scene.settled('workers', version);
      const wrong = await scene.wrongAfter('workers', version, workers);
      return [...wrong, ...(await withoutFile(scene, workers.keys()))];
    },
  );
  const [machine] = await scene.machines('control plane');
  const current = machine?.spec.version ?? '';
  const controlPlane = await scene.identities('control plane');
  await checks.check(
    'a file by the agents of the control plane: in place, no service was started',
    async () => {
      const starts = JSON.stringify(scene.starts(controlPlane.keys()));
      await wantControlPlane(scene, { kubeadmConfigSpec: { files: [...CONTENT, OWN] } });
      await scene.until(
        'the file on all Machines',
        async () => (await withoutFile(scene, controlPlane.keys())).length === 0,
      );
      await scene.settled('control plane', current);
      const wrong = await scene.wrongAfter('control plane', current, controlPlane);
      const isSame = JSON.stringify(scene.starts(controlPlane.keys())) === starts;
      return [...wrong, ...(isSame ? [] : ['a service was started, although only a file changed'])];
    },
  );
  await checks.check(
    'a file where no agent may write: refused, and once that is undone all goes on',
    async () => {
      const calls = await scene.managers.calls('control-plane', 'CanUpdateMachine');
      const files = [...CONTENT, OWN, { path: '/etc/elsewhere', content: 'x' }];
      await wantControlPlane(scene, { kubeadmConfigSpec: { files } });
      await scene.until('a refusal', async () => {
        const { failed } = await scene.managers.calls('control-plane', 'CanUpdateMachine');
        return failed > calls.failed;
      });
      await wantControlPlane(scene, { kubeadmConfigSpec: { files: [...CONTENT, OWN] } });
      await scene.settled('control plane', current);
      return await scene.wrongAfter('control plane', current, controlPlane);
    },
  );
}

/** Machines whose hosts do not have the file. */
async function withoutFile({ machineNodes }: Scene, machines: Iterable<string>): Promise<string[]> {
  const found = [...machines].map(async (name) => {
    const path = join(machineNodes.host(name).directory, 'root', OWN.path);
    const text = await readFile(path, 'utf8').catch(() => 'nothing');
    return text === OWN.content ? [] : [`${OWN.path} of ${name} holds ${text}`];
  });
  return (await Promise.all(found)).flat();
}

/** Machines whose files the example has not written. */
export async function missing({ options }: Scene, machines: Iterable<string>): Promise<string[]> {
  const found = [...machines].map(async (name) => {
    const path = join(options.directory, 'state', `${NAMESPACE}-${name}-files.json`);
    const text = await readFile(path, 'utf8').catch(() => 'nothing');
    const isWritten = text !== 'nothing' && isDeepStrictEqual(JSON.parse(text), CONTENT);
    return isWritten ? [] : [`the updater of files wrote ${text} for ${name}`];
  });
  return (await Promise.all(found)).flat();
}

/** Starts the example with the certificates of the extension and its callers. */
export async function startExample(
  { extension, options: { directory, abort } }: Scene,
  port: number,
): Promise<Process> {
  const shown = join(directory, 'updater-certs', 'updaters');
  for (const folder of [shown, join(directory, 'state')]) await mkdir(folder, { recursive: true });
  await writeFile(join(shown, 'tls.crt'), extension.client.certificate);
  await writeFile(join(shown, 'tls.key'), extension.client.key, { mode: 0o600 });
  return await startProcess({
    name: 'updater-files',
    command: process.execPath,
    args: [EXAMPLE, String(port), join(directory, 'hooks'), 'files', join(directory, 'state')],
    directory,
    ready: async () => await isListening(port),
    clock: systemClock,
    abort,
  });
}

async function isListening(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    const end = (isUp: boolean) => (): void => {
      socket.destroy();
      resolve(isUp);
    };
    socket.once('connect', end(true)).once('error', end(false));
  });
}
