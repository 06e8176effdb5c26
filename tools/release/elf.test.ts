/** Tests that a program still runs after its unloaded part is cut off. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { withoutUnloaded } from './elf.ts';

test('Node.js runs without its symbols, and is at least 20 MiB smaller', () => {
  const directory = mkdtempSync(join(tmpdir(), 'refit-elf-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const whole = readFileSync(process.execPath);
  const less = withoutUnloaded(whole);
  expect(whole.length - less.length).toBeGreaterThan(20 * 1024 * 1024);
  const path = join(directory, 'node');
  writeFileSync(path, less, { mode: 0o755 });
  expect(execFileSync(path, ['--version'], { encoding: 'utf8' }).trim()).toBe(process.version);
});

test('another file is refused', () => {
  expect(() => withoutUnloaded(Buffer.from('#!/bin/sh\n'))).toThrow(
    'not a 64-bit little-endian ELF file',
  );
});
