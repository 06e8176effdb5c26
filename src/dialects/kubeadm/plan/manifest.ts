/** Reads the manifest of a kubeadm cluster: its hosts, how to reach them, and the version to upgrade to. */
import { X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { titleOf } from '../../../api/read-object.ts';
import { readBounded, readNamed } from '../../../util/bounded-file.ts';
import { listIssues } from '../../../util/describe-issue.ts';
import { failing, messageOf, RefitError } from '../../../util/errors.ts';
import { defined, isRecord } from '../../../util/json.ts';
import { repeated } from '../../../util/repeated.ts';
import { strictObject } from '../../../util/strict-object.ts';
import { compareVersionTexts, withV } from '../../../util/version.ts';
import { parseYamlDocument } from '../../../util/yaml.ts';
import { LIFTABLE } from '../../../versions/findings.ts';
import { optionsFor } from '../host/scripts.ts';
import { nodeName, port, version } from './fields.ts';
import { type KubeOneParts, kubeOneManifest } from './kubeone.ts';

const filledText = z.string().min(1);
const optionalText = filledText.exactOptional();

const hash = z.string().regex(/^[0-9a-fA-F]{64}$/, 'is not a SHA-256: use 64 hexadecimal digits');

/** The processors for which Kubernetes is built. */
const architecture = z
  .string()
  .regex(
    /^(amd64|arm64|arm|386|ppc64le|s390x|riscv64)$/,
    'is not an architecture that Kubernetes has; use for example amd64 or arm64',
  );
/** The SHA-256 of a file: one hash for all hosts, or one hash for each processor architecture. */
const sha256 = z.union([hash, z.record(architecture, hash)]);

const absolute = z.string().regex(/^\/\P{Cc}*$/u, 'is not an absolute path on the host');

/**
 * A file on each host, or a download with its hash. In both, `{arch}` is replaced by the processor architecture of the
 * host.
 */
const binary = z.union(
  [
    strictObject({ path: absolute, sha256: sha256.exactOptional() }),
    strictObject({ url: z.url({ protocol: /^https?$/ }), sha256 }),
  ],
  'expected path (a file on the host), or url with sha256 (64 hex digits), or a value for each processor, such as {amd64: …, arm64: …}',
);

/** Options of `kubeadm upgrade` with kubeadm's own names. An option of a host replaces the same option for all hosts. */
const kubeadmOptions = strictObject({
  ignorePreflightErrors: z
    .array(z.string().regex(/^[\w.-]+$/, "is not the name of a check of kubeadm's preflight"))
    .min(1)
    .exactOptional(),
  patches: absolute.exactOptional(),
  config: absolute.exactOptional(),
  certificateRenewal: z.boolean().exactOptional(),
  etcdUpgrade: z.boolean().exactOptional(),
});

/** Accepts a boolean, because YAML parses an unquoted `yes` as a boolean. ssh knows only `yes` and `no`. */
const sshValue = z.preprocess((given) => {
  if (typeof given !== 'boolean') return given;
  return given ? 'yes' : 'no';
}, z.string());

const access = {
  user: optionalText,
  port: port.exactOptional(),
  identityFile: optionalText,
  /** The PATH for scripts on the host. It is needed if sudo sets a shorter PATH. */
  path: absolute.exactOptional(),
  /** Options for ssh as `-o NAME=VALUE`. Each host also gets the options for all hosts. */
  options: z.record(z.string(), sshValue).exactOptional(),
};

const binaries = strictObject({
  kubeadm: binary,
  kubelet: binary,
  kubectl: binary.exactOptional(),
});

/** The binaries of one host. If a binary is missing here, the host uses the binary that is set for all hosts. */
const ownBinaries = strictObject({
  kubeadm: binary.exactOptional(),
  kubelet: binary.exactOptional(),
  kubectl: binary.exactOptional(),
}).refine(
  (own) => Object.keys(own).length > 0,
  'expected at least one of kubeadm, kubelet and kubectl',
);

const host = strictObject({
  name: nodeName,
  address: optionalText,
  role: z.enum(['controlPlane', 'worker']),
  ...access,
  kubeadm: kubeadmOptions.exactOptional(),
  /** Binaries of this host only, for example for another processor or another operating system. */
  binaries: ownBinaries.exactOptional(),
  /** Binaries of this host only, for the intermediate versions before the target version. */
  hops: z.array(strictObject({ version, binaries: ownBinaries })).exactOptional(),
  /**
   * The host through which ssh reaches this host. By default, ssh logs in to the bastion with the user and the key of
   * this host.
   */
  bastion: strictObject({
    address: filledText,
    port: port.default(22),
    user: optionalText,
    identityFile: optionalText,
  }).exactOptional(),
});

/** The containerd to install on each host that gets a new version of Kubernetes. It is installed before that version. */
const containerd = strictObject({
  version: z
    .string()
    .regex(/^v?\d+\.\d+\.\d+$/, 'is not a release of containerd; use for example v2.3.3')
    .transform(withV),
  binaries: strictObject({
    containerd: binary,
    'containerd-shim-runc-v2': binary,
    ctr: binary.exactOptional(),
    runc: binary.exactOptional(),
  }),
});

const manifest = strictObject({
  version,
  /**
   * The intermediate versions before the target version: one for each minor version between the current version and the
   * target version.
   */
  hops: z.array(strictObject({ version, binaries })).default([]),
  /**
   * True to leave workers at their version while the control plane is upgraded through the intermediate versions. This
   * applies as long as the kubelets of the workers are not too old for the API servers.
   */
  workersSkipMinors: z.boolean().default(false),
  kubeconfig: optionalText,
  concurrent: z.int().min(1).default(1),
  hosts: z.array(host).min(1),
  binaries,
  containerd: containerd.exactOptional(),
  kubeadm: kubeadmOptions.prefault({}),
  /**
   * The rules of the preflight whose findings are only warnings, because a person has checked the findings and accepts
   * them.
   */
  allow: z.array(z.enum(LIFTABLE)).default([]),
  /** The number of etcd snapshots that are kept on the host where they are taken; 0 to take no snapshots. */
  etcdSnapshots: z.int().min(0).max(100).default(2),
  /**
   * The file with the certificate with which snapshots are encrypted. After loading, the field contains the certificate
   * itself.
   */
  etcdSnapshotCertificate: optionalText,
  /** True to approve the certificate requests of kubelets that have `serverTLSBootstrap`. */
  approveServingCertificates: z.boolean().default(false),
  /** Files or folders with plain manifests. */
  addons: z.array(strictObject({ name: nodeName, path: filledText })).default([]),
  ssh: strictObject({ ...access, knownHostsFile: optionalText, configFile: optionalText }).prefault(
    {},
  ),
});

/** The manifest after loading. It has `kubeOne` if it was written for KubeOne. */
export type Manifest = z.infer<typeof manifest> & { readonly kubeOne?: KubeOneParts };
export type ManifestHost = Manifest['hosts'][number];

/** Matches the options of ssh that users cannot set. Refit sets them itself, because its safety depends on them. */
const RESERVED =
  /^(batchmode|stricthostkeychecking|userknownhostsfile|globalknownhostsfile|knownhostscommand|updatehostkeys|verifyhostkeydns|nohostauthenticationforlocalhost|gssapidelegatecredentials|clearallforwardings|forward(agent|x11)|control(master|path|persist))$/i;

/** Accepts only letters and digits. ssh ignores blanks, quotes and `=` around a name, and these would hide a reserved name. */
const OPTION_NAME = /^[A-Za-z0-9]+$/;

export function controlPlaneOf({ hosts }: Pick<Manifest, 'hosts'>): ManifestHost[] {
  return hosts.filter(({ role }) => role === 'controlPlane');
}

const NO_MANIFEST =
  'name the manifest with -m FILE; the guide of Refit about kubeadm shows how to write one';

/**
 * Loads a manifest. Relative paths are resolved from the directory of the manifest, and paths with ~/ from the home
 * directory.
 * @throws RefitError REFIT_FILE with file, field, found and expected
 */
export async function loadManifest(path: string): Promise<Manifest> {
  const read = parseManifest(await readNamed(path, 'REFIT_FILE', NO_MANIFEST), path);
  const { ssh, kubeOne } = read;
  const resolved = (file?: string) =>
    file && resolve(dirname(path), file.replace(/^~(?=\/)/, homedir()));
  // KubeOne's manifest has no fields for the known hosts and the kubeconfig. So Refit uses the files that KubeOne
  // writes to the directory of the manifest.
  const writtenByKubeOne = (file: string): string | undefined =>
    kubeOne && existsSync(resolve(dirname(path), file)) ? file : undefined;
  const withKey = <T extends { readonly identityFile?: string }>(each: T) =>
    defined({ ...each, identityFile: resolved(each.identityFile) });
  return defined({
    ...read,
    kubeconfig: resolved(read.kubeconfig ?? writtenByKubeOne(`${kubeOne?.name}-kubeconfig`)),
    ssh: defined({
      ...ssh,
      identityFile: resolved(ssh.identityFile),
      knownHostsFile: resolved(ssh.knownHostsFile ?? writtenByKubeOne('known_hosts')),
      configFile: resolved(ssh.configFile),
    }),
    etcdSnapshotCertificate: await certificateIn(resolved(read.etcdSnapshotCertificate)),
    addons: read.addons.map(({ name, path: of }) => ({ name, path: resolve(dirname(path), of) })),
    hosts: read.hosts.map((each) =>
      defined({ ...withKey(each), bastion: each.bastion && withKey(each.bastion) }),
    ),
  });
}

/** Returns only the certificate from the file, because the text is copied to a host and must contain nothing else. */
async function certificateIn(file: string | undefined): Promise<string | undefined> {
  try {
    return file && new X509Certificate(await readBounded(file)).toString();
  } catch (error) {
    const why = `is not a certificate in PEM: ${messageOf(error)}`;
    throw new RefitError('REFIT_FILE', `etcdSnapshotCertificate: ${file} ${why}`);
  }
}

const EXPECTED = 'a manifest with `version` and `hosts`, or a KubeOneCluster';

/** Returns a clause with the command that takes an object of this kind. */
function commandFor(kind: string): string {
  return kind === 'Plan'
    ? '`refit preview -f` shows what a Plan would do'
    : '`refit validate` checks the objects of other kinds';
}

export function parseManifest(text: string, file: string): Manifest {
  const fail = failing('REFIT_FILE', `${file}: `);
  const value = parseYamlDocument(text, (why) => fail(`cannot be read as YAML: ${why}`));
  if (value === null || value === undefined)
    return fail(`is empty or has only comments, expected ${EXPECTED}`);
  if (isRecord(value) && typeof value['kind'] === 'string' && value['kind'] !== 'KubeOneCluster')
    return fail(`holds ${titleOf(value)}, expected ${EXPECTED}; ${commandFor(value['kind'])}`);
  const isKubeOne = isRecord(value) && value['kind'] === 'KubeOneCluster';
  const kubeOne = isKubeOne ? kubeOneManifest.safeParse(value, { reportInput: true }) : undefined;
  const { data, error } = manifest.safeParse(kubeOne ? kubeOne.data?.manifest : value, {
    reportInput: true,
  });
  if (!data) return fail(listIssues(kubeOne?.error ?? error, 'the manifest'));
  const problems = problemsIn(data);
  if (problems.length > 0) return fail(problems);
  return defined({ ...data, kubeOne: kubeOne?.data?.parts });
}

/** Returns the problems that the schema cannot find, each with its field. */
function problemsIn(data: z.infer<typeof manifest>): string[] {
  return [
    ...repeatedIn(data),
    ...(controlPlaneOf(data).length === 0
      ? ['hosts: no host has the role controlPlane; add at least one']
      : []),
    ...optionProblems(data),
    ...combinedOptions(data),
    ...hopProblems(data),
    ...hopsOfHostsProblems(data),
  ];
}

function repeatedIn({ hosts, ssh, addons }: z.infer<typeof manifest>): string[] {
  const first = new Map(hosts.map((each) => [each.name, each]));
  // Hosts with the same name count as one host here. Otherwise a host that is listed twice would also be reported for
  // its address.
  const ways = [...first.values()].map(
    ({ name, address = name, port: at = ssh.port ?? 22, bastion }) =>
      [address, `port ${at}`, ...(bastion ? [`through ${bastion.address}`] : [])].join(' '),
  );
  const unique = {
    hosts: hosts.map(({ name }) => name),
    'hosts[].address': ways,
    addons: addons.map(({ name }) => name),
  };
  return Object.entries(unique).flatMap(([field, all]) =>
    repeated(all).map((twice) => `${field}: ${twice} is listed twice; list each once`),
  );
}

function optionProblems({ ssh, hosts }: z.infer<typeof manifest>): string[] {
  return [ssh, ...hosts].flatMap(({ options = {} }, index) => {
    const field = `${index === 0 ? 'ssh' : `hosts[${index - 1}]`}.options`;
    return Object.keys(options).flatMap((name) => {
      // Guard ssh-reserved. A manifest cannot replace these options.
      if (RESERVED.test(name)) return [`${field}: ${name} is set by Refit; remove it`];
      // Guard ssh-option-name. Blanks and quotes would hide a reserved name.
      if (OPTION_NAME.test(name)) return [];
      const shown = JSON.stringify(name);
      return [`${field}: ${shown} is not the name of an option; use letters and digits alone`];
    });
  });
}

function combinedOptions(data: z.infer<typeof manifest>): string[] {
  return data.hosts.flatMap((each) => {
    const { config, ignorePreflightErrors: _, ...others } = optionsFor(data, each);
    const names = Object.keys(others).join(', ');
    const advice = `kubeadm does not combine them: write ${names} into the file that config names`;
    if (config === undefined || names === '') return [];
    return [`kubeadm: host ${each.name} has config and ${names}; ${advice}`];
  });
}

function hopProblems({ hops, version: last }: z.infer<typeof manifest>): string[] {
  const way = [...hops.map(({ version: each }) => each), last];
  return way.slice(1).flatMap((next, index) => {
    const before = way[index];
    if (compareVersionTexts(before, next) < 0) return [];
    return [`hops[${index}].version: ${before} is not lower than ${next}, which comes next`];
  });
}

/**
 * A host may define its own hops. Returns a problem for each of these hops whose version is not in the list of hops for
 * all hosts. A hop of a host only replaces some binaries of the hop with the same version in that list.
 */
function hopsOfHostsProblems({ hops, hosts }: z.infer<typeof manifest>): string[] {
  const known = hops.map(({ version: each }) => each);
  const advice =
    known.length === 0
      ? 'the manifest has no hops; add this version under "hops", or remove it from this field'
      : `use one of the versions under hops: ${known.join(', ')}`;
  return hosts.flatMap((each, index) => {
    const own = (each.hops ?? []).map((hop) => hop.version);
    const field = `hosts[${index}].hops`;
    const unknown = own.flatMap((found, at) =>
      known.includes(found)
        ? []
        : [`${field}[${at}].version: ${found} is not on the upgrade path; ${advice}`],
    );
    const twice = repeated(own).map((found) => `${field}: ${found} is listed twice; list it once`);
    return [...unknown, ...twice];
  });
}
