/** A client certificate like a kubelet's: one file with certificate and key, replaced atomically by a newer one. */
import { readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { issueFor, subjectOf } from '../../../tools/controlplane/kubeconfig.ts';
import { controlPlane, kubeconfigFor, type User } from '../control-plane.ts';

interface Kubeconfig {
  users: { user: Record<string, string> }[];
}

export class RotatingCertificate {
  /** Path of a kubeconfig that refers to the file. */
  readonly kubeconfig: string;
  readonly #directory: string;
  readonly #user: User;
  #count = 0;

  constructor(directory: string, user: User) {
    this.kubeconfig = join(directory, 'kubelet.conf');
    this.#directory = directory;
    this.#user = user;
  }

  /**
   * Installs a certificate that is valid for `validMs` milliseconds. Returns the path of a kubeconfig that contains
   * only this certificate.
   */
  async rotate(validMs: number): Promise<string> {
    const now = Date.now();
    const validity = { notBefore: now - 60_000, notAfter: now + validMs };
    const { certificate, key } = await issueFor(controlPlane(), subjectOf(this.#user), validity);
    const file = join(this.#directory, `client-${++this.#count}.pem`);
    await writeFile(file, certificate + key, { mode: 0o600 });
    const current = join(this.#directory, 'client-current.pem');
    await symlink(file, `${current}.new`);
    await rename(`${current}.new`, current);
    await this.#write(this.kubeconfig, current);
    const fixed = `${file}.conf`;
    await this.#write(fixed, file);
    return fixed;
  }

  async #write(path: string, certificate: string): Promise<void> {
    const config = parse(await readFile(await kubeconfigFor(this.#user), 'utf8')) as Kubeconfig;
    const user = { 'client-certificate': certificate, 'client-key': certificate };
    const users = config.users.map((entry) => ({ ...entry, user }));
    await writeFile(path, JSON.stringify({ ...config, users }));
  }
}
