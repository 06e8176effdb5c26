/** Installs on a new machine what k0s needs, and the service that runs it. */
import { cp, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { furnishBase } from '../../machines/furnish.ts';
import { KUBELET_CONFIGURATION, onVersion1 } from '../../machines/kernel.ts';
import type { Machine } from '../../machines/machine.ts';
import { OPERATOR } from '../../machines/namespaces.ts';
import { IMAGES, PAUSE } from '../parts/images.ts';

/** The path of the executable on every machine. k0s's own agent demands that the file is called `k0s`. */
export const EXECUTABLE = '/usr/local/bin/k0s';
/** The file with flags of k0s that a scene changes, and the file with the token with which a machine joins. */
export const FLAGS = '/etc/k0s.flags';
export const TOKEN = '/etc/k0s.token';
const SERVICES = ['k0s', 'refit-agent', 'refit-controller'];
const PROFILE = 'machines';

/** The components that the machines do without: each of them needs an image that cannot be pulled here. */
const WITHOUT = [
  'coredns',
  'helm',
  'konnectivity-server',
  'kube-proxy',
  'metrics-server',
  'network-provider',
  'update-prober',
  'windows-node',
];

export interface Furniture {
  readonly role: 'controller' | 'worker';
  /** The path of the executable that is installed first. */
  readonly k0s: string;
  readonly parts: string;
  /** The addresses of all controllers. */
  readonly controllers: readonly string[];
  /** Lines of /etc/hosts. */
  readonly hosts: string;
  /** The seconds after which the supervisor starts k0s again. The unit of k0s has 10. */
  readonly restartSeconds: number;
}

export async function furnish(machine: Machine, furniture: Furniture): Promise<void> {
  const { root, address } = machine;
  const { role, k0s, parts, controllers, hosts, restartSeconds } = furniture;
  await cp(k0s, join(root, 'local/bin/k0s'));
  const images = join(root, 'var/lib/k0s/images');
  await mkdir(images, { recursive: true });
  if (role === 'worker')
    for (const { archive } of IMAGES)
      await cp(join(parts, 'images', archive), join(images, archive));
  await furnishBase(machine, {
    hosts,
    files: {
      'etc/k0s/k0s.yaml': stringify(clusterConfig(address, controllers)),
      'etc/k0s/audit.yaml': stringify(AUDIT),
      'etc/k0s/containerd.d/machine.toml': CONTAINERD,
      'etc/k0s.flags': '\n',
      'etc/services.d/k0s': role === 'controller' ? CONTROLLER : WORKER,
      'etc/services.d/refit-agent': await refitAgent(),
      'etc/services.d/refit-controller': REFIT_CONTROLLER,
      'etc/restart-seconds/k0s': `${restartSeconds}\n`,
      'etc/restart-seconds/refit-agent': '5\n',
      'etc/restart-seconds/refit-controller': '5\n',
      // A scene starts each service when it has what the service needs.
      ...Object.fromEntries(SERVICES.map((name) => [`var/lib/services/${name}.off`, ''])),
    },
  });
}

const CONTROLLER = `[ ! -e ${TOKEN} ] || token="--token-file ${TOKEN}"
exec ${EXECUTABLE} controller --config /etc/k0s/k0s.yaml --disable-components ${WITHOUT.join()} $token $(cat ${FLAGS})
`;

const WORKER = `exec ${EXECUTABLE} worker --profile ${PROFILE} --ignore-pre-flight-checks --token-file ${TOKEN} $(cat ${FLAGS})
`;

/** A scene may give the processes of Refit another clock. */
const ENVIRONMENT = '[ ! -s /etc/refit.environment ] || . /etc/refit.environment\n';

const REFIT_CONTROLLER = `${ENVIRONMENT}exec /usr/local/bin/refit controller --apply-crds --kubeconfig /etc/refit/controller.conf $(cat /etc/refit.flags 2>/dev/null)
`;

/** Returns the lines of the agent's unit that systemd would carry out. */
async function refitAgent(): Promise<string> {
  const unit = await readFile(
    join(import.meta.dirname, '../../../../deploy/host/refit-agent.service'),
    'utf8',
  );
  const [, environment = ''] = /^Environment=(.*)$/m.exec(unit) ?? [];
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
  return `${ENVIRONMENT}umask 077\nexport ${environment}\nexec ${command}\n`;
}

/** An addition to the configuration that k0s writes. */
const CONTAINERD = `version = 3

[plugins."io.containerd.cri.v1.runtime"]
# Who may not lower the score of a process keeps it.
restrict_oom_score_adj = true
disable_apparmor = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/opt/parts/debian/usr/lib/cni"]
conf_dir = "/etc/cni/net.d"
`;

/** What changes objects, with the whole request, because the recordings are made from it. */
const AUDIT = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [
    { level: 'None', verbs: ['get', 'list', 'watch'] },
    { level: 'Metadata', resources: [{ group: 'coordination.k8s.io' }] },
    {
      level: 'Request',
      resources: [
        { group: 'autopilot.k0sproject.io' },
        { group: '', resources: ['nodes', 'pods', 'pods/eviction'] },
      ],
    },
    { level: 'Metadata' },
  ],
};

function clusterConfig(address: string, controllers: readonly string[]): object {
  const { apiVersion: _version, kind: _kind, ...kubelet } = KUBELET_CONFIGURATION;
  return {
    apiVersion: 'k0s.k0sproject.io/v1beta1',
    kind: 'ClusterConfig',
    metadata: { name: 'k0s' },
    spec: {
      api: {
        address,
        externalAddress: OPERATOR,
        sans: [...controllers, OPERATOR],
        extraArgs: {
          'audit-policy-file': '/etc/k0s/audit.yaml',
          'audit-log-path': '/var/log/audit.log',
        },
      },
      storage: {
        type: 'etcd',
        // Six machines share two cores, so elections need more patience.
        etcd: {
          peerAddress: address,
          extraArgs: { 'heartbeat-interval': '500', 'election-timeout': '5000' },
        },
      },
      network: {
        provider: 'custom',
        podCIDR: '10.244.0.0/16',
        serviceCIDR: '10.96.0.0/12',
        kubeProxy: { disabled: true },
      },
      images: { pause: PAUSE },
      telemetry: { enabled: false },
      workerProfiles: [
        {
          name: PROFILE,
          values: { ...kubelet, ...(onVersion1() ? { failCgroupV1: false } : {}) },
        },
      ],
    },
  };
}
