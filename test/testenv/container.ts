/**
 * Runs a container image with runc, as a kubelet would under the restricted profile: as a user other than root, and
 * with a read-only root file system.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const CACHE = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'refit', 'runc');
/**
 * Mounts a cgroup hierarchy of version 2 for runc alone, whatever version the machine uses. runc may create a group in
 * it.
 */
const WITH_CGROUPS = 'mount -t cgroup2 none /sys/fs/cgroup && exec "$@"';

/**
 * Returns runc from PATH. If PATH has none, unpacks Debian's package into the cache and returns that program. Throws if
 * neither is possible.
 */
export function findRunc(): string {
  if (spawnSync('runc', ['--version']).status === 0) return 'runc';
  const runc = join(CACHE, 'usr', 'sbin', 'runc');
  if (existsSync(runc)) return runc;
  mkdirSync(CACHE, { recursive: true });
  execFileSync(
    'sh',
    ['-ec', 'apt-get download runc && dpkg-deb -x runc_*.deb . && rm runc_*.deb'],
    {
      cwd: CACHE,
      stdio: 'pipe',
    },
  );
  return runc;
}

/** Returns the reason why no container can run here; undefined if a container can run. */
export function whyNoContainer(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root may start containers';
  if (spawnSync('dpkg-deb', ['--version']).status !== 0)
    return 'the libraries of the image come from Debian packages';
  try {
    execFileSync(findRunc(), ['--version']);
    return undefined;
  } catch (error) {
    return `there is no runc, and Debian's cannot be unpacked: ${String(error)}`;
  }
}

interface Descriptor {
  readonly digest: string;
  readonly platform?: { readonly architecture: string };
}

interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly WorkingDir: string;
}

/** An image, unpacked as a container engine does. */
export class UnpackedImage {
  readonly config: ImageConfig;
  readonly root: string;
  readonly #layout: string;

  /** `archive` is an OCI archive; `directory` an empty folder. */
  constructor(archive: string, directory: string, architecture: string) {
    this.#layout = join(directory, 'layout');
    this.root = join(directory, 'rootfs');
    for (const folder of [this.#layout, this.root]) mkdirSync(folder);
    execFileSync('tar', ['-xf', archive, '-C', this.#layout]);
    const { manifests } = this.#read('index.json') as { manifests: [Descriptor] };
    const index = this.#read(this.#path(manifests[0])) as { manifests: Descriptor[] };
    const chosen = index.manifests.find(({ platform }) => platform?.architecture === architecture);
    if (chosen === undefined) throw new Error(`the image is not for ${architecture}`);
    const manifest = this.#read(this.#path(chosen)) as { config: Descriptor; layers: Descriptor[] };
    this.config = (this.#read(this.#path(manifest.config)) as { config: ImageConfig }).config;
    for (const layer of manifest.layers) {
      const blob = join(this.#layout, this.#path(layer));
      const hash = createHash('sha256').update(readFileSync(blob)).digest('hex');
      if (layer.digest !== `sha256:${hash}`)
        throw new Error(`${layer.digest} has the hash ${hash}`);
      execFileSync('tar', ['-xzpf', blob, '-C', this.root]);
    }
  }

  #path({ digest }: Descriptor): string {
    return `blobs/${digest.replace(':', '/')}`;
  }

  #read(path: string): unknown {
    return JSON.parse(readFileSync(join(this.#layout, path), 'utf8'));
  }
}

export interface ContainerOptions {
  /** Replaces the entrypoint of the image. */
  readonly entrypoint?: readonly string[];
  readonly args: readonly string[];
  /** Files that the container may read, by path in it. */
  readonly files?: Readonly<Record<string, string>>;
}

/** A container in the machine's own network, without capabilities. */
export class Container implements AsyncDisposable {
  readonly output: string[] = [];
  /** Exit code. */
  readonly ended: Promise<number | null>;
  readonly #child: ChildProcess;
  readonly #runc: readonly [string, ...string[]];
  readonly #id = `refit-test-${process.pid}-${++count}`;

  constructor(image: UnpackedImage, directory: string, options: ContainerOptions) {
    const bundle = join(directory, this.#id);
    mkdirSync(bundle);
    writeFileSync(join(bundle, 'config.json'), JSON.stringify(specOf(image, options)));
    this.#runc = [findRunc(), '--root', join(directory, 'runc')];
    const jail = ['--mount', '--propagation', 'private', 'sh', '-ec', WITH_CGROUPS, 'sh'];
    const run = [...this.#runc, 'run', '--bundle', bundle, this.#id];
    this.#child = spawn('unshare', [...jail, ...run], { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      if (stream) createInterface({ input: stream }).on('line', (line) => this.output.push(line));
    this.ended = once(this.#child, 'close').then(([code]) => code as number | null);
  }

  /** The PID of its first process on this machine; undefined while the container starts. */
  get pid(): number | undefined {
    const [command, ...before] = this.#runc;
    const { status, stdout } = spawnSync(command, [...before, 'state', this.#id], {
      encoding: 'utf8',
    });
    return status === 0 ? (JSON.parse(stdout) as { pid: number }).pid : undefined;
  }

  /** Stops the container with SIGTERM, as a kubelet does. */
  async stop(): Promise<number | null> {
    this.#child.kill('SIGTERM');
    return await this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { pid } = this;
    if (pid) process.kill(pid, 'SIGKILL');
    await this.ended;
    rmSync(join('/sys/fs/cgroup/unified', this.#id), { recursive: true, force: true });
  }
}

let count = 0;

function specOf(
  { config, root }: UnpackedImage,
  { entrypoint = config.Entrypoint, args, files = {} }: ContainerOptions,
) {
  const [uid, gid] = config.User.split(':').map(Number);
  const bind = ['bind', 'ro', 'nosuid', 'nodev', 'noexec'];
  return {
    ociVersion: '1.0.2',
    root: { path: root, readonly: true },
    process: {
      user: { uid, gid },
      args: [...entrypoint, ...args],
      env: config.Env,
      cwd: config.WorkingDir,
      capabilities: {},
      noNewPrivileges: true,
    },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      {
        destination: '/dev',
        type: 'tmpfs',
        source: 'tmpfs',
        options: ['nosuid', 'mode=755', 'size=64k'],
      },
      ...Object.entries(files).map(([destination, source]) => ({
        destination,
        source,
        type: 'bind',
        options: bind,
      })),
    ],
    linux: { namespaces: ['pid', 'mount', 'ipc', 'uts'].map((type) => ({ type })) },
  };
}
