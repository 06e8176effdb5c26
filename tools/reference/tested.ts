/** Writes docs/reference/tested.md: the programs, and their versions, with which the tests run Refit. */
import { readFileSync } from 'node:fs';
import { RECIPES } from '../controlplane/components.ts';
import { chosenRelease, RELEASES } from '../controlplane/releases.ts';

const lock = JSON.parse(
  readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8'),
) as {
  packages: Readonly<Record<string, { version: string }>>;
};
const node = lock.packages['node_modules/node']?.version ?? '';

type Row = readonly [what: string, version: string, how: string, where: string];

/** Returns the programs of Kubernetes that the tests build from the Go module proxy. */
function built(): Row[] {
  const kubernetes = [
    'kube-apiserver',
    'kube-controller-manager',
    'kube-scheduler',
    'kubectl',
  ] as const;
  return [
    ...kubernetes.map(
      (name): Row => [name, RECIPES[name].version, 'the real program', 'test/testenv'],
    ),
    ['etcd', RECIPES.etcd.version, 'the real program', 'test/testenv'],
    [
      'etcdutl',
      RECIPES.etcdutl.version,
      'the real program',
      'test/testenv/kubeadm-restore.test.ts',
    ],
    [
      'kwok',
      RECIPES.kwok.version,
      "the real program, with the API server's versions of libraries; simulates nodes and pods",
      'test/testenv',
    ],
    [
      'Helm',
      RECIPES.helm.version,
      'the real program: lint, template, install, upgrade, uninstall',
      'test/testenv/chart.test.ts',
    ],
    [
      'kustomize',
      `of kubectl ${RECIPES.kubectl.version}`,
      'the real program',
      'test/testenv/chart.test.ts',
    ],
  ];
}

/** The minor versions of Kubernetes on which the tests run only if somebody asks for them. */
const OTHER_MINORS = [...RELEASES].filter(([, release]) => release !== chosenRelease({}));

/** The minor versions on which all tests of the second tier have passed, and not only those of conformance. */
const WHOLE = ['v1.30', 'v1.37'];

const OTHERS: readonly Row[] = [
  ...OTHER_MINORS.map(([minor, { kubernetes, etcd }]): Row => {
    const [folder, more] = WHOLE.includes(minor)
      ? ['test/testenv', '']
      : ['test/conformance', ' test/conformance'];
    return [
      `kube-apiserver ${minor}`,
      `${kubernetes}, with etcd ${etcd}`,
      `the real programs; only in \`npm run test:real -- --kubernetes ${minor}${more}\``,
      folder,
    ];
  }),
  ['Node.js', node, 'the one in the binary', 'test/testenv/image.test.ts'],
  ['runc', "Debian's", 'the real program runs the image', 'test/testenv/image.test.ts'],
  [
    'systemd',
    "Debian's",
    'the real program, as first process of a jail',
    'test/testenv/whole-install.test.ts',
  ],
  [
    'the agents as a DaemonSet',
    '',
    'runc runs the image beside real systemd; a real kubelet and containerd run it only in `npm run proof:kubeadm -- --only daemonset`',
    'test/agent/install.test.ts',
  ],
  [
    'user-mode QEMU',
    "Debian's",
    'the real program starts the arm64 binary',
    'test/agent/binary.test.ts',
  ],
  ['OpenRC', "Debian's", 'the real supervise-daemon, in a jail', 'test/agent/openrc.test.ts'],
  [
    'OpenSSH',
    "Debian's",
    'the real server where it is installed, and one in JavaScript',
    'test/testenv/kubeadm-killed.test.ts',
  ],
  [
    'apt',
    'that of the host',
    'the real program upgrades packages on an overlay, and downgrades them by one patch version; those of a real kubeadm cluster only in `npm run proof:kubeadm -- --only packages-back`',
    'test/agent/kubeadm-packages.test.ts',
  ],
  [
    'dnf, zypper and rpm',
    "Debian's",
    'the real programs upgrade packages on an overlay, and downgrade them by one patch version',
    'test/agent/kubeadm-packages.test.ts',
  ],
  ['promtool', "Debian's", 'the real program checks the alerts', 'tools/deploy/monitoring.test.ts'],
  [
    'k0s',
    'v1.36.2, v1.36.3, and how older versions differ',
    'a double, compared with recordings of real clusters',
    'test/support/doubles',
  ],
  [
    'k0s with its etcd, kubelets and containerd',
    'v1.36.2+k0s.0, v1.36.3+k0s.2',
    'the real programs, on machines that are Linux namespaces; only in `npm run proof:k0s`',
    'test/proof/k0s',
  ],
  [
    'system-upgrade-controller',
    'v0.20.1',
    'its Plans, hashes, Jobs and labels; the tests do not run the program',
    'test/testenv/cattle.test.ts',
  ],
  [
    'system-upgrade-controller and its test suite',
    'v0.20.1',
    'the real programs, in a kubeadm cluster on machines that are Linux namespaces; only in `npm run proof:suc`',
    'test/proof/suc',
  ],
  [
    'the script of k3s-upgrade',
    'commit e45db208b49b of April 2026',
    'the real script, with stand-ins for K3s that run real kubelets; only in `npm run proof:suc -- --only upgrade-script`',
    'test/proof/suc/upgrade-script',
  ],
  [
    'kubeadm, kubelet',
    'v1.36',
    'stand-ins that behave as the real programs were observed to behave',
    'test/testenv/kubeadm.test.ts',
  ],
  [
    'kubeadm and kubelet',
    'v1.34.4 to v1.37.2',
    'the real programs, on machines that are Linux namespaces; only in `npm run proof:kubeadm`. The part `--only minor` goes to v1.37.2 and its etcd',
    'test/proof/kubeadm',
  ],
  [
    'Cluster API',
    'v1.13.4',
    'a stand-in for the manager calls the hooks as recorded',
    'test/testenv/capi.test.ts',
  ],
  [
    'managers of Cluster API',
    'v1.14.2, v1.13.4, v1.12.5',
    'the real programs, with stand-in services on the nodes; only in `npm run proof:capi`',
    'test/proof/capi',
  ],
  [
    'cert-manager',
    'v1.11.5',
    'its controller; only in `npm run proof:capi -- --only cert-manager`',
    'test/proof/capi/parts/cert-manager.ts',
  ],
];

export function testedReference(): string {
  const rows = [...built(), ...OTHERS].map(
    ([what, version, how, where]) => `| ${what} | ${version} | ${how} | \`${where}\` |`,
  );
  return `${[
    '# What Refit is tested with',
    '',
    '`npm run generate` writes this page. *The real program* means that the tests start it. A double or a stand-in imitates it. Neither `npm test` nor `npm run test:real` runs a real k0s,',
    'kubeadm, kubelets, system-upgrade-controller or managers of Cluster API: try a first upgrade on a cluster that you can lose. Versions of Kubernetes that this page does not name are not tested.',
    '',
    '| what | version | how | test |',
    '|---|---|---|---|',
    ...rows,
  ].join('\n')}\n`;
}
