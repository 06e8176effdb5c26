/** Reads the manifest of a kubeadm cluster: its hosts, how to reach them, and the version to upgrade to. */
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { pathOf } from '../../api/read-object.ts';
import { readBounded } from '../../util/bounded-file.ts';
import { messageOf, RefitError } from '../../util/errors.ts';
import { defined } from '../../util/json.ts';
import { printableUrl } from '../../util/printable-url.ts';
import { firstRepeated } from '../../util/repeated.ts';
import { parseVersion } from '../../util/version.ts';
import { parseYaml } from '../../util/yaml.ts';

/** RFC 1123, as Kubernetes asks of node names. */
const NODE_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

const sha256 = z.string().regex(/^[0-9a-fA-F]{64}$/);

const absolute = z.string().regex(/^\/\P{Cc}*$/u, 'is not an absolute path on the host');

/** A file on each host, or a download with its hash. */
const binary = z.union([
  z.strictObject({ path: absolute, sha256: sha256.exactOptional() }),
  z.strictObject({ url: z.url({ protocol: /^https?$/ }), sha256 }),
]);

/** Options of `kubeadm upgrade`, by its own names; those of a host replace those for all. */
const kubeadmOptions = z.strictObject({
  ignorePreflightErrors: z
    .array(z.string().regex(/^[\w.-]+$/, "is not the name of a check of kubeadm's preflight"))
    .min(1)
    .exactOptional(),
  /** Directory. */
  patches: absolute.exactOptional(),
  /** File with an UpgradeConfiguration. */
  config: absolute.exactOptional(),
  certificateRenewal: z.boolean().exactOptional(),
  etcdUpgrade: z.boolean().exactOptional(),
});

const host = z.strictObject({
  name: z.string().max(253).regex(NODE_NAME, 'is not the name of a Node: use lower-case letters, digits, "-" and "."'),
  /** Defaults to the name. */
  address: z.string().min(1).exactOptional(),
  port: z.int().min(1).max(65_535).exactOptional(),
  user: z.string().min(1).exactOptional(),
  role: z.enum(['controlPlane', 'worker']),
  identityFile: z.string().min(1).exactOptional(),
  /** PATH of scripts; sudo may have set a shorter one. */
  path: absolute.exactOptional(),
  kubeadm: kubeadmOptions.exactOptional(),
});

const manifest = z.strictObject({
  version: z.string().refine((text) => parseVersion(text) !== undefined, 'is not a version; use for example v1.36.3'),
  kubeconfig: z.string().min(1).exactOptional(),
  /** Workers to upgrade at once. */
  concurrent: z.int().min(1).default(1),
  hosts: z.array(host).min(1),
  /** kubectl is replaced where a host has it. */
  binaries: z.strictObject({ kubeadm: binary, kubelet: binary, kubectl: binary.exactOptional() }),
  kubeadm: kubeadmOptions.prefault({}),
  /** How many are kept on the host that takes them; 0: none is taken. */
  etcdSnapshots: z.int().min(0).max(100).default(2),
  ssh: z
    .strictObject({
      user: z.string().min(1).exactOptional(),
      port: z.int().min(1).max(65_535).exactOptional(),
      path: absolute.exactOptional(),
      identityFile: z.string().min(1).exactOptional(),
      knownHostsFile: z.string().min(1).exactOptional(),
      configFile: z.string().min(1).exactOptional(),
      /** Passed to ssh as `-o NAME=VALUE`. */
      options: z.record(z.string(), z.string()).exactOptional(),
    })
    .prefault({}),
});

export type Manifest = z.infer<typeof manifest>;
export type ManifestHost = Manifest['hosts'][number];
export type Binary = z.infer<typeof binary>;
export type KubeadmOptions = z.infer<typeof kubeadmOptions>;

/** Options that Refit sets itself, since its safety depends on them. */
const RESERVED =
  /^(batchmode|stricthostkeychecking|userknownhostsfile|globalknownhostsfile|knownhostscommand|updatehostkeys|verifyhostkeydns|nohostauthenticationforlocalhost|forward(agent|x11)|control(master|path|persist))$/i;

export function optionsFor(manifest: Manifest, host: ManifestHost): KubeadmOptions {
  return { ...manifest.kubeadm, ...host.kubeadm };
}

/** Relative paths start at the manifest's directory. @throws RefitError REFIT_FILE with file, field, found and expected */
export async function loadManifest(path: string): Promise<Manifest> {
  const text = await readBounded(path).catch((error: unknown) => {
    throw new RefitError('REFIT_FILE', `cannot read ${path}: ${messageOf(error)}`, { cause: error });
  });
  const read = parseManifest(text, path);
  const { ssh } = read;
  const resolved = (file: string | undefined): string | undefined => file && resolve(dirname(path), file);
  return defined({
    ...read,
    kubeconfig: resolved(read.kubeconfig),
    ssh: defined({
      ...ssh,
      identityFile: resolved(ssh.identityFile),
      knownHostsFile: resolved(ssh.knownHostsFile),
      configFile: resolved(ssh.configFile),
    }),
    hosts: read.hosts.map((each) => defined({ ...each, identityFile: resolved(each.identityFile) })),
  });
}

export function parseManifest(text: string, file: string): Manifest {
  const fail = (why: string): never => {
    throw new RefitError('REFIT_FILE', `${file}: ${why}`);
  };
  const [value] = parseYaml(text, (why) => fail(`is not YAML: ${why}`));
  const { data, error } = manifest.safeParse(value, { reportInput: true });
  if (!data) return fail(describe(error.issues[0]));
  const names = data.hosts.map(({ name }) => name);
  const twice = firstRepeated(names);
  if (twice !== undefined) return fail(`hosts: ${twice} is listed twice; list each host once`);
  if (!data.hosts.some(({ role }) => role === 'controlPlane'))
    return fail('hosts: no host has the role controlPlane; add at least one');
  const reserved = Object.keys(data.ssh.options ?? {}).find((name) => RESERVED.test(name));
  if (reserved !== undefined) return fail(`ssh.options: ${reserved} is set by Refit; remove it`);
  for (const each of data.hosts) {
    const { config, ignorePreflightErrors: _, ...others } = optionsFor(data, each);
    const [other] = Object.keys(others);
    const advice = `kubeadm does not combine them, write ${other} into that file`;
    if (config !== undefined && other !== undefined)
      return fail(`kubeadm: host ${each.name} has config and ${other}; ${advice}`);
  }
  return { ...data, version: `v${data.version.replace(/^v/, '')}` };
}

function describe(issue: z.core.$ZodIssue | undefined): string {
  if (!issue) return 'is not a manifest';
  const where = pathOf(issue.path) || 'the manifest';
  if (issue.code === 'unrecognized_keys') return `${where}: unknown field ${issue.keys.join(', ')}; check the spelling`;
  const found = issue.input === undefined ? 'missing' : JSON.stringify(issue.input, hideSecrets).slice(0, 60);
  const { code, message } = issue;
  if (code === 'custom' || code === 'invalid_format') return `${where}: ${found} ${message}`;
  if (code === 'invalid_union')
    return `${where}: ${found}; use path for a file on the host, or url with sha256 (64 hex digits)`;
  const wanted = code === 'invalid_type' ? `expected ${issue.expected}` : message.replace(/^(?:Invalid|Too) \w+: /, '');
  return `${where}: ${found}; ${wanted}`;
}

/** Only text with `://` can be a URL with a password. */
function hideSecrets(_key: string, value: unknown): unknown {
  return typeof value === 'string' && value.includes('://') ? printableUrl(value) : value;
}
