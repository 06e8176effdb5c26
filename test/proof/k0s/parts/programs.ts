/** The programs that k0s carries: they are built with the version strings that k0s's build gives them. */
import { existsSync, readdirSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RefitError } from '../../../../src/util/errors.ts';
import {
  type BuildOptions,
  ensureBuilt,
  ensureComponents,
} from '../../../../tools/controlplane/build.ts';
import { kubernetesProgram } from '../../../../tools/controlplane/components.ts';
import { cacheFolder } from '../../../../tools/release/commands.ts';
import { CONTAINERD, containerdRecipe, RUNTIME } from '../../machines/containerd.ts';
import type { Source } from './source.ts';

const KUBERNETES = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
] as const;

const MANIFESTS = join(import.meta.dirname, '../../../../tools/proof');

/** Returns the files of the payload. Programs of Debian are started by wrappers, because only `/opt/parts` has them. */
export async function gatherPayload(source: Source, options: BuildOptions): Promise<string[]> {
  const own = {
    ...options,
    environment: { ...options.environment, KUBEBUILDER_ASSETS: undefined },
  };
  const module = `v${source.kubernetes}`;
  if (!existsSync(join(MANIFESTS, module)))
    throw new RefitError(
      'REFIT_TESTENV',
      `this release of k0s carries Kubernetes ${module}, for which tools/proof has no manifest; it has ${readdirSync(
        MANIFESTS,
      )
        .filter((name) => name.startsWith('v'))
        .join(', ')}`,
    );
  const version = `${module}+k0s`;
  const kubernetes = KUBERNETES.map(
    (name) => [name, kubernetesProgram(name, `proof/${module}`, version)] as const,
  );
  // One containerd serves all releases. It is at least as new as the one that these releases of k0s carry.
  const runtime = RUNTIME.filter((name) => name !== 'ctr').map(
    (name) => [name, containerdRecipe(name, 'proof/containerd', CONTAINERD.from)] as const,
  );
  const { etcd } = await ensureComponents(['etcd'], own);
  return [
    ...(await ensureBuilt(kubernetes, own)),
    ...(await ensureBuilt(runtime, own)),
    etcd,
    ...(await wrappers()),
  ];
}

const DEBIAN = '/opt/parts/debian';
const LIBRARIES = `$(echo ${DEBIAN}/usr/lib/*-linux-gnu*)`;

/** k0s calls the programs of iptables by links to these files, so a wrapper passes on the name by which it was called. */
const TABLES = (kind: string): string => `#!/bin/sh
name=$(basename "$0")
case $name in xtables-*) ;; *) set -- "$name" "$@" ;; esac
LD_LIBRARY_PATH=${LIBRARIES} XTABLES_LIBDIR=${LIBRARIES}/xtables exec ${DEBIAN}/usr/sbin/xtables-${kind}-multi "$@"
`;

const WRAPPERS: Readonly<Record<string, string>> = {
  runc: `#!/bin/sh\nLD_LIBRARY_PATH=${LIBRARIES} exec ${DEBIAN}/usr/sbin/runc "$@"\n`,
  'xtables-legacy-multi': TABLES('legacy'),
  'xtables-nft-multi': TABLES('nft'),
};

async function wrappers(): Promise<string[]> {
  const folder = join(await cacheFolder('proof'), 'k0s-wrappers');
  await mkdir(folder, { recursive: true });
  const paths: string[] = [];
  for (const [name, text] of Object.entries(WRAPPERS)) {
    const path = join(folder, name);
    await writeFile(path, text);
    await chmod(path, 0o755);
    paths.push(path);
  }
  return paths;
}
