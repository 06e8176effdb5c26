/** Defines fields that Refit's manifest and KubeOne's manifest share. */
import { z } from 'zod';
import { parseVersion, withV } from '../../../util/version.ts';

/** Matches names of RFC 1123, which Kubernetes requires for Nodes. */
const NODE_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

export const nodeName = z
  .string()
  .max(253)
  .regex(NODE_NAME, 'is not the name of a Node: use lower-case letters, digits, "-" and "."');

export const port = z.int().min(1).max(65_535);

export const version = z
  .string()
  .refine((text) => parseVersion(text) !== undefined, 'is not a version; use for example v1.36.3')
  .transform(withV);
