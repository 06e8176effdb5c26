/** Reads single fields of a kubeconfig; every error names file, entry and field. */
import { isAbsolute, join } from 'node:path';
import { RefitError } from '../../util/errors.ts';
import { isRecord } from '../../util/json.ts';
import type { Pem } from './cluster-config.ts';

/** One named entry and the file it came from. */
export interface Entry {
  readonly file: string;
  /** Relative paths in the entry start here. */
  readonly directory: string;
  /** For messages: `user "admin"`. */
  readonly name: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The entries of one list (`clusters`, `users`, `contexts`) by name; the first of equal names wins. */
export function section(
  config: Readonly<Record<string, unknown>>,
  list: string,
  member: string,
  { file, directory }: Pick<Entry, 'file' | 'directory'>,
): Map<string, Entry> {
  const entries = new Map<string, Entry>();
  const found = config[list] ?? [];
  if (!Array.isArray(found)) throw new RefitError('REFIT_KUBECONFIG', `${file}: ${list} must be a list`);
  for (const [index, item] of found.entries()) {
    if (!isRecord(item) || typeof item['name'] !== 'string') {
      throw new RefitError('REFIT_KUBECONFIG', `${file}: ${list}[${index}] has no name`);
    }
    const fields = item[member] ?? {};
    const name = `${member} "${item['name']}"`;
    if (!isRecord(fields)) throw new RefitError('REFIT_KUBECONFIG', `${file}: ${name} must be a mapping`);
    if (!entries.has(item['name'])) entries.set(item['name'], { file, directory, name, fields });
  }
  return entries;
}

/** Undefined when the field is absent, null or empty, which mean the same in a kubeconfig. */
export function textField(entry: Entry, field: string): string | undefined {
  const value = entry.fields[field];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'string') return value;
  throw complaint(entry, field, 'must be a string');
}

export function booleanField(entry: Entry, field: string): boolean {
  const value = entry.fields[field] ?? false;
  if (typeof value === 'boolean') return value;
  throw complaint(entry, field, 'must be true or false');
}

export function textList(entry: Entry, field: string): string[] {
  const value = entry.fields[field] ?? [];
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
  throw complaint(entry, field, 'must be a list of strings');
}

export function pathField(entry: Entry, field: string): string | undefined {
  const path = textField(entry, field);
  return path === undefined || isAbsolute(path) ? path : join(entry.directory, path);
}

/** PEM given inline in base64 (`<field>-data`) wins over a file (`<field>`), as in kubectl. */
export function pemField(entry: Entry, field: string): Pem | undefined {
  const inline = textField(entry, `${field}-data`);
  if (inline !== undefined) {
    const text = Buffer.from(inline, 'base64').toString('latin1');
    if (text.includes('-----BEGIN ')) return { text };
    throw complaint(entry, `${field}-data`, 'must be PEM in base64');
  }
  const file = pathField(entry, field);
  return file === undefined ? undefined : { file };
}

export function complaint(entry: Entry, field: string, problem: string): RefitError {
  return new RefitError('REFIT_KUBECONFIG', `${entry.file}: ${field} of ${entry.name} ${problem}`);
}
