// SPDX-License-Identifier: Apache-2.0
//
// tests: a picture of spheres: the nearest hit of a ray, its normal, a shadow
// ray and one mirror, structs and branches all the way.
//
// nvrtc: --fmad=false
// other: 12.9 compute_75
//
// run: trace
// grid: 6 4 1
// block: 8 8 1
// also: 3 16 1 16 2 1
// buffer: spheres in f32 48 unit 471
// buffer: out out u8 1536
// scalar: width i32 48
// scalar: height i32 32
// scalar: count i32 12
struct vec {
  float x, y, z;
};

__device__ static vec along(vec a, vec d, float t) {
  vec v = {a.x + d.x * t, a.y + d.y * t, a.z + d.z * t};
  return v;
}
__device__ static vec from_to(vec a, vec b) { return along(b, a, -1.0f); }
__device__ static float dot(vec a, vec b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
__device__ static vec unit(vec a) {
  float length = sqrtf(dot(a, a));
  vec v = {a.x / length, a.y / length, a.z / length};
  return v;
}

// The nearest hit beyond t = 0.001; -1 if there is none.
__device__ static float nearest(const float4* spheres, int count, vec eye,
                                vec ray, int* which) {
  float best = -1;
  for (int i = 0; i < count; ++i) {
    vec centre = {spheres[i].x * 6 - 3, spheres[i].y * 4 - 2,
                  spheres[i].z * 4 + 3};
    float radius = spheres[i].w * 0.5f + 0.25f;
    vec to = from_to(eye, centre);
    float b = dot(to, ray);
    float c = b * b - dot(to, to) + radius * radius;
    if (c < 0) continue;
    float t = b - sqrtf(c);
    if (t > 0.001f && (best < 0 || t < best)) {
      best = t;
      *which = i;
    }
  }
  return best;
}

extern "C" __global__ void trace(const float4* spheres, unsigned char* out,
                                 int width, int height, int count) {
  int px = blockIdx.x * blockDim.x + threadIdx.x;
  int py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px >= width || py >= height) return;
  vec eye = {0, 0, -1};
  vec aim = {((float)px - width * 0.5f) / height,
             ((float)py - height * 0.5f) / height, 1};
  vec ray = unit(aim);
  vec toward = {0.6f, -0.8f, -0.4f};
  vec light = unit(toward);
  float shade = 0;
  float weight = 1;
  for (int bounce = 0; bounce < 2; ++bounce) {
    int hit = 0;
    float t = nearest(spheres, count, eye, ray, &hit);
    if (t < 0) {
      shade += weight * (0.5f - 0.5f * ray.y);
      break;
    }
    vec at = along(eye, ray, t);
    vec centre = {spheres[hit].x * 6 - 3, spheres[hit].y * 4 - 2,
                  spheres[hit].z * 4 + 3};
    vec normal = unit(from_to(centre, at));
    int ignored = 0;
    float bright = dot(normal, light);
    if (bright > 0 && nearest(spheres, count, at, light, &ignored) < 0) {
      shade += weight * 0.7f * bright;
    }
    ray = along(ray, normal, -2 * dot(ray, normal));
    eye = at;
    weight *= 0.3f;
  }
  shade = fminf(fmaxf(shade, 0.0f), 1.0f);
  out[py * width + px] = (unsigned char)(shade * 255.0f + 0.5f);
}
